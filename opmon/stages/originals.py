"""A converted model beside the original: the one that is judged must be the one that answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import ModelFile, Network, Registry
from opmon.config import MonitorSettings
from opmon.errors import ModelError
from opmon.problems import traits
from opmon.scoring.conversion.network import outputs_of
from opmon.scoring.conversion.original import answers_of
from opmon.scoring.outputs.sets import HALF, named
from opmon.scoring.scored import Scored
from opmon.scoring.scorer import Scorer
from opmon.stages.models import model_file
from opmon.types import Array, Batch, ModelVersion
from opmon.values import canonical_classes
from opmon.wording import percent

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

log = logging.getLogger(__name__)

ROWS = 1000
"""So many inputs are answered by both."""
LEAST = 0.995
"""So many answers must be equal for the converted model to be judged in place of the original."""
_CLOSE = 1e-3
"""Numbers are equal that differ by no more than this share of themselves, or of how much all of them differ."""
_KEPT = "compared.json"
BOOSTERS = ("xgboost", "lightgbm", "catboost")
"""Flavors of boosted trees, which are converted from their file."""
CODE = ("sklearn", "pytorch")
"""Flavors that are converted where the code in them may be run."""
Original: TypeAlias = "BaseEstimator | ModelFile | Network"


@dataclass(frozen=True)
class Agreement:
    """On how many inputs a converted model and its original answer alike."""

    inputs: int
    equal: int

    @property
    def enough(self) -> bool:
        return self.equal >= LEAST * self.inputs

    def __str__(self) -> str:
        return f"{self.equal:,} of {self.inputs:,} answers of the converted model are those of the original"

    @property
    def refusal(self) -> str:
        """What is said where they are too few."""
        return (
            f"only {self}, and {percent(LEAST)} must be: another model would be judged. Let the model itself answer "
            f"(scoring: {{by: flavor, trust: true}}), register it as ONNX (mlflow.onnx.log_model), or log production's "
            f"own answers and name their column (columns.prediction)."
        )


def has_original(model: ModelVersion) -> bool:
    """Whether there is a model that the ONNX file should answer like."""
    return bool({*CODE, *BOOSTERS} & set(model.flavors))


def permission(model: ModelVersion) -> str:
    """The key that lets opmon run the code in the original."""
    return "scoring: {by: onnx, trust: true}" if "pytorch" in model.flavors else "convert_sklearn: true"


def may_be_asked(settings: MonitorSettings, model: ModelVersion) -> bool:
    """Whether an ONNX file is run whose original may be loaded: one with code in it only where it is trusted."""
    trusted = settings.may_run_code or not {*CODE} & set(model.flavors)
    return settings.scoring.by == "onnx" and has_original(model) and trusted


def agreement(scorer: Scorer, original: Original, batches: Sequence[Batch]) -> Agreement:
    """On how many of the inputs that can be scored the loaded ONNX file and the original answer alike."""
    asked = [batch for batch in batches if batch.rows.num_rows]
    scorer = replace(scorer, outputs=replace(scorer.outputs, threshold=HALF))  # the original knows no other
    equal = [_equal(scorer, original, *pair) for pair in zip(asked, scorer.score(asked), strict=True)]
    return Agreement(sum(map(len, equal)), int(sum(map(np.sum, equal))))


def _equal(scorer: Scorer, original: Original, batch: Batch, scored: Scored) -> NDArray[np.bool_]:
    rows = scored.rows - batch.first_row
    fed = scorer.tensors(batch.rows) if isinstance(original, Network) else scorer.exact(batch.rows)
    asked = np.isin(fed.rows, rows)
    tensors = {name: values[asked] for name, values in fed.tensors.items()}
    given = scored.predictions[np.isin(rows, fed.rows)]
    answers = _own(scorer, original, tensors)
    if traits(scorer.outputs.problem).of_numbers:
        return _close(given, answers.astype(np.float64))
    equal: NDArray[np.bool_] = given == answers
    return equal


def _own(scorer: Scorer, original: Original, tensors: Mapping[str, Array]) -> Array:
    """The original's predictions; the outputs of a network are read as those of the graph are."""
    if isinstance(original, Network):
        found = outputs_of(original, tensors)
        return scorer.outputs.read([found[name] for name in scorer.outputs.names]).predictions
    answers, holds = answers_of(original, tensors), traits(scorer.outputs.problem)
    if holds.of_numbers:
        return answers
    if holds.one_class:
        return scorer.outputs.renamed(canonical_classes(answers))
    holding = np.asarray(answers).reshape(len(next(iter(tensors.values()))), -1).astype(bool)
    return named(holding, scorer.outputs.classes or tuple(map(str, range(holding.shape[1]))))


def require_agreement(
    settings: MonitorSettings,
    registry: Registry,
    model: ModelVersion,
    folder: Path,
    scorer: Scorer,
    rows: pa.RecordBatch | None,
) -> Agreement | None:
    """Compare a converted model with its original, once on each machine; None where it is not trusted, or has none.

    Where production's own answers are judged, one that is too unlike is told and not refused: its variables may do.
    """
    if rows is None or not rows.num_rows or not may_be_asked(settings, model):
        return None
    kept = model_file(settings, registry, model, folder).with_name(_KEPT)
    found = _read(kept)
    if found is None:
        try:
            batches = [Batch(0, 0, rows.slice(0, ROWS))]
            found = agreement(scorer, _original(settings, registry, model, folder), batches)
        except ModelError as exc:
            log.warning("%s was converted, and not compared with its original: %s", model.uri, exc)
            return None
        log.log(logging.INFO if found.enough else logging.WARNING, "%s: %s", model.uri, found)
        if found.inputs == 0:
            return None
        kept.write_text(json.dumps(asdict(found)), encoding="utf-8")
    if settings.columns.prediction is None and not found.enough:
        raise ModelError(f"{model.uri}: {found.refusal}")
    return found


def _original(settings: MonitorSettings, registry: Registry, model: ModelVersion, folder: Path) -> Original:
    return registry.original(model, folder / "models", settings.may_run_code)


def _close(given: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.bool_]:
    spread = float(np.std(wanted)) if len(wanted) else 0.0
    close: NDArray[np.bool_] = np.abs(given - wanted) <= _CLOSE * np.maximum(np.abs(wanted), spread)
    return close


def _read(path: Path) -> Agreement | None:
    try:
        told: Mapping[str, int] = json.loads(path.read_text(encoding="utf-8"))
        return Agreement(**told)
    except (OSError, ValueError, TypeError):
        return None

"""A converted model beside the original: the one that is judged must be the one that answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import ModelFile, Network, Registry
from opmon.config import MonitorSettings
from opmon.errors import ModelError
from opmon.problems import traits
from opmon.scoring.conversion.network import outputs_of
from opmon.scoring.conversion.original import Refusals, answered
from opmon.scoring.outputs.sets import HALF, named
from opmon.scoring.scored import Scored
from opmon.scoring.scorer import Scorer
from opmon.stages.models import model_file
from opmon.types import Array, Batch, ModelVersion
from opmon.values import canonical_classes
from opmon.wording import counted, percent

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

log = logging.getLogger(__name__)

ROWS = 1000
"""So many inputs are answered by both."""
LEAST = 0.995
"""So many answers must be equal for the converted model to be judged in place of the original."""
_CLOSE = 1e-3
"""Numbers are equal that differ by no more than this share of themselves, or of how much all of them differ."""
_REFUSED = 100
"""An original that refuses more is not asked for the rest: to find one such input takes up to a dozen questions."""
_KEPT = "compared-2.json"
"""Ends with the number of the way in which both are compared: a new one is not content with what an old one found."""
BOOSTERS = ("xgboost", "lightgbm", "catboost")
"""Flavors of boosted trees, which are converted from their file."""
CODE = ("sklearn", "pytorch")
"""Flavors that are converted where the code in them may be run."""
Original: TypeAlias = "BaseEstimator | ModelFile | Network"


@dataclass(frozen=True)
class Agreement:
    """On how many inputs a converted model and its original answer alike, of those that the original answers."""

    inputs: int
    equal: int
    refused: int = 0
    """The inputs that only the converted model answers."""
    unasked: int = 0
    """The inputs that are left when the original has refused too many."""
    reason: str = ""
    """The error of the original on the first that it refuses."""

    @property
    def enough(self) -> bool:
        return self.equal >= LEAST * self.inputs

    @property
    def whole(self) -> bool:
        """Whether they are enough, and no input is left out."""
        return self.enough and not self.refused

    def __str__(self) -> str:
        return f"{self._alike}{self._left_out}"

    @property
    def refusal(self) -> str:
        """What is said where they are too few."""
        return (
            f"only {self._alike}, and {percent(LEAST)} must be: another model would be judged{self._left_out}. Let the "
            f"model itself answer (scoring: {{by: flavor, trust: true}}), register it as ONNX (mlflow.onnx.log_model), "
            f"or log production's own answers and name their column (columns.prediction)."
        )

    @property
    def _alike(self) -> str:
        return f"{self.equal:,} of {self.inputs:,} answers of the converted model are those of the original"

    @property
    def _left_out(self) -> str:
        """The inputs that were not compared, and why."""
        if not self.refused:
            return ""
        rest = f", and was not asked about {self.unasked:,} more" if self.unasked else ""
        answers = f"{counted(self.refused, 'input')} that the converted model answers"
        return f"; the original refuses {answers} ({self.reason.rstrip('.')}){rest}"


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
    refusals = Refusals(_REFUSED)
    equal = [_equal(scorer, original, refusals, *pair) for pair in zip(asked, scorer.score(asked), strict=True)]
    inputs = sum(map(len, equal))
    if refusals.count and not inputs:
        raise ModelError(f"the original does not answer: {refusals.reason}")
    return Agreement(inputs, int(sum(map(np.sum, equal))), refusals.count, refusals.unasked, refusals.reason)


def _equal(scorer: Scorer, original: Original, refusals: Refusals, batch: Batch, scored: Scored) -> NDArray[np.bool_]:
    """Whether both answer alike, for each input that both answer."""
    rows = scored.rows - batch.first_row
    fed = scorer.tensors(batch.rows) if isinstance(original, Network) else scorer.exact(batch.rows)
    asked = np.isin(fed.rows, rows)
    tensors = {name: values[asked] for name, values in fed.tensors.items()}
    given = scored.predictions[np.isin(rows, fed.rows)]
    places, answers = _own(scorer, original, tensors, refusals)
    if not len(places):
        return np.empty(0, np.bool_)
    given = given[places]
    if traits(scorer.outputs.problem).of_numbers:
        return _close(given, answers.astype(np.float64))
    equal: NDArray[np.bool_] = given == answers
    return equal


def _own(
    scorer: Scorer, original: Original, tensors: Mapping[str, Array], refusals: Refusals
) -> tuple[NDArray[np.int64], Array]:
    """The inputs that the original answers, and its predictions; a network's outputs are read as the graph's are."""
    if isinstance(original, Network):
        found = outputs_of(original, tensors)
        said = scorer.outputs.read([found[name] for name in scorer.outputs.names]).predictions
        return np.arange(len(said)), said
    places, answers = answered(original, tensors, refusals)
    holds = traits(scorer.outputs.problem)
    if holds.of_numbers or not len(places):
        return places, answers
    if holds.one_class:
        return places, scorer.outputs.renamed(canonical_classes(answers))
    holding = np.asarray(answers).reshape(len(places), -1).astype(bool)
    return places, named(holding, scorer.outputs.classes or tuple(map(str, range(holding.shape[1]))))


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
        log.log(logging.INFO if found.whole else logging.WARNING, "%s: %s", model.uri, found)
        if found.inputs == 0:
            return None
        if not found.unasked:
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
        told: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Agreement(**told)
    except (OSError, ValueError, TypeError):
        return None

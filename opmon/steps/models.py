"""The model of a monitor, loaded with the variables that its configuration asks for."""

from __future__ import annotations

import hashlib
from pathlib import Path

from opmon.config import MonitorSettings
from opmon.errors import ModelError
from opmon.registry import Registry
from opmon.scoring.reference import Reference
from opmon.scoring.scorer import Scorer
from opmon.types import ModelVersion

REFERENCE_TAG = "opmon.reference"
REFERENCES = "opmon/references"
"""The experiment in which references are kept, one run for each model version."""


def open_scorer(
    settings: MonitorSettings,
    registry: Registry,
    model: ModelVersion,
    folder: Path,
    traced: bool = False,
    plain: bool = False,
) -> Scorer:
    """The model, downloaded below ``folder`` and loaded; with its reference, where a variable may need one.

    ``plain``: for its predictions alone, without auxiliary variables.
    """
    path = registry.fetch_onnx(model, folder / "models", convert_sklearn=settings.convert_sklearn)
    heads = {} if traced or plain else settings.heads
    reference = find_reference(settings, registry, model, folder) if heads else None
    try:
        return Scorer.open(
            path,
            settings.problem,
            classes=settings.classes,
            features=settings.inputs.features,
            tensor=settings.inputs.tensor,
            device=settings.device,
            threads=settings.threads,
            output=settings.output,
            scores=settings.scores,
            heads=heads,
            reference=reference,
            layer=settings.layer,
            traced=traced,
        )
    except ModelError as exc:
        raise ModelError(f"{model.uri}: {exc}") from exc


def find_reference(
    settings: MonitorSettings, registry: Registry, model: ModelVersion, folder: Path
) -> Reference | None:
    """The file that the configuration names, or what ``opmon reference`` left for the model version; None without."""
    if settings.reference is not None:
        return Reference.load(settings.reference)
    path = registry.published(model, REFERENCE_TAG, folder / "references")
    return None if path is None else Reference.load(path)


def publish_reference(reference: Reference, registry: Registry, model: ModelVersion, folder: Path) -> Path:
    """Keep a reference with its model version in MLflow, under a name of its own content."""
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "reference.npz"
    reference.save(written)
    name = hashlib.sha256(written.read_bytes()).hexdigest()[:16]
    path = written.replace(folder / f"reference-{name}.npz")
    registry.publish(model, REFERENCE_TAG, REFERENCES, path)
    return path

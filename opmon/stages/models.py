"""The model of a monitor, loaded with the variables that its configuration asks for."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from opmon.abc import Head, Registry
from opmon.config import MissingSettings, MonitorSettings
from opmon.errors import ModelError
from opmon.jobs.model import ByFlavor, ByLog, ByOnnx
from opmon.scoring.conversion.converting import convert
from opmon.scoring.devices import Device
from opmon.scoring.inputs.columns import Missing
from opmon.scoring.inputs.images import ImageInput
from opmon.scoring.inputs.readers import FunctionInput, ReaderPlan
from opmon.scoring.inputs.texts import TextInput
from opmon.scoring.logged import LoggedColumns
from opmon.scoring.outputs.meaning import Scores
from opmon.scoring.reference.fitted import Reference
from opmon.spellings import Classes
from opmon.types import ModelVersion

REFERENCE_TAG = "opmon.reference"
SAMPLE_TAG = "opmon.reference.sample"
REFERENCES = "opmon/references"
"""The experiment in which references are kept, one run for each model version."""


class Answering(TypedDict):
    """How a model is fed, run and read: keywords of ``ByOnnx`` and ``Scorer.open``."""

    classes: Classes | None
    features: tuple[str, ...] | None
    tensor: str | None
    device: Device
    threads: int | None
    output: str | None
    scores: Scores
    threshold: float
    missing: Missing


class Reading(Answering):
    """The same, with how rows become tensors."""

    reading: ReaderPlan | None
    signature: tuple[str, ...]


def answering(settings: MonitorSettings) -> Answering:
    """How a monitor says that its model is fed, run and read."""
    return {
        "classes": settings.classes,
        "features": settings.inputs.features,
        "tensor": settings.inputs.tensor,
        "device": settings.runs_on,
        "threads": settings.threads,
        "output": settings.output,
        "scores": settings.scores,
        "threshold": settings.scoring.threshold,
        "missing": missing_of(settings.inputs.missing),
    }


def missing_of(settings: MissingSettings) -> Missing:
    """What the model is given where a value is missing."""
    numbers = math.nan if settings.numbers is None else settings.numbers
    return Missing(numbers, settings.text or "", settings.refuse, own=settings.text is None)


def model_file(settings: MonitorSettings, registry: Registry, model: ModelVersion, folder: Path) -> Path:
    """The model's ONNX file below ``folder``: its own, or a converted one; of pickles where the monitor trusts them."""
    return registry.fetch_onnx(model, folder / "models", convert, settings.may_run_code)


def way_of(
    settings: MonitorSettings,
    registry: Registry,
    model: ModelVersion,
    folder: Path,
    traced: bool = False,
    plain: bool = False,
) -> ByOnnx | ByLog | ByFlavor:
    """How a model version scores batches, as the monitor says; its files are below ``folder``.

    ``plain``: for its predictions alone, without auxiliary variables. ``traced``: with the activations of the layer.
    """
    match settings.scoring.by:
        case "logged":
            columns = LoggedColumns(settings.columns.prediction, settings.columns.scores, settings.columns.threshold)
            own = (settings.class_names, settings.spellings, settings.scores, settings.scoring.threshold)
            return ByLog(columns, settings.problem, *own)
        case "flavor":
            return _by_flavor(settings, registry, model, folder)
    return onnx_way(settings, registry, model, folder, traced, plain)


def _by_flavor(settings: MonitorSettings, registry: Registry, model: ModelVersion, folder: Path) -> ByFlavor:
    columns = settings.columns
    proxy = None if settings.proxy_column is None else settings.proxy_column.column
    named = (columns.id, columns.timestamp, columns.prediction, columns.model_version, *columns.scores, proxy)
    return ByFlavor(
        registry.runnable(model, folder / "models"),
        model.uri,
        settings.problem,
        folder,
        settings.class_names,
        settings.spellings,
        settings.scores,
        settings.inputs.features or ((settings.inputs.tensor,) if settings.inputs.tensor else ()),
        frozenset(name for name in named if name is not None),
        registry.signature(model),
        settings.scoring.env,
        settings.scoring.timeout.total_seconds(),
        settings.scoring.memory,
        reading_of(settings),
        settings.scoring.threshold,
    )


def onnx_way(
    settings: MonitorSettings,
    registry: Registry,
    model: ModelVersion,
    folder: Path,
    traced: bool = False,
    plain: bool = False,
) -> ByOnnx:
    """The model's ONNX file below ``folder``, with its reference where a variable may need one."""
    path = model_file(settings, registry, model, folder)
    heads = {} if plain else bound_heads(settings.heads, registry, folder)
    return ByOnnx(
        path,
        model.uri,
        settings.problem,
        **answering(settings),
        heads=heads,
        reference=find_reference(settings, registry, model, folder) if heads else None,
        layer=settings.layer,
        traced=traced,
        reading=reading_of(settings),
        signature=signature_of(registry, model),
    )


def bound_heads(heads: Mapping[str, Head], registry: Registry | None, folder: Path) -> dict[str, Head]:
    """The heads; those that name another model of the registry with that model at hand."""

    def fetch(uri: str) -> Path:
        if registry is None:
            raise ModelError(f"{uri} is in a registry, and none is configured")
        return registry.fetch_onnx(registry.resolve(uri), folder / "models")

    return {name: head.bind(fetch) for name, head in heads.items()}


def reading_of(settings: MonitorSettings) -> ReaderPlan | None:
    """How rows become tensors where they hold pictures, text, or what only the user's own function understands."""
    inputs = settings.inputs
    if inputs.image is not None:
        return ImageInput(**{name: getattr(inputs.image, name) for name in type(inputs.image).model_fields})
    if inputs.text is not None:
        return TextInput(inputs.text.column, inputs.text.tokenizer, inputs.text.length)
    return None if inputs.function is None else FunctionInput(inputs.function)


def signature_of(registry: Registry, model: ModelVersion) -> tuple[str, ...]:
    """The columns that a model says it takes, in their order; none where it does not say."""
    signature = registry.signature(model)
    return () if signature is None else signature.names


def find_reference(settings: MonitorSettings, registry: Registry, model: ModelVersion, folder: Path) -> Path | None:
    """The file that the configuration names, or what ``opmon reference`` left for the model version; None without."""
    return settings.reference or registry.published(model, REFERENCE_TAG, folder / "references")


def publish_reference(
    reference: Reference, registry: Registry, model: ModelVersion, folder: Path, sample: pa.Table | None = None
) -> Path:
    """Keep a reference with its model version in MLflow, under a name of its own content.

    ``sample`` are rows of the training data, which drift reports compare production with.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "reference.npz"
    reference.save(written)
    name = hashlib.sha256(written.read_bytes()).hexdigest()[:16]
    path = written.replace(folder / f"reference-{name}.npz")
    registry.publish(model, REFERENCE_TAG, REFERENCES, path)
    if sample is not None and sample.num_rows:
        rows = folder / f"training-sample-{name}.parquet"
        pq.write_table(sample, rows)
        registry.publish(model, SAMPLE_TAG, REFERENCES, rows)
    return path

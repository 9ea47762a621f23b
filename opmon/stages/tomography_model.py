"""A registered model as a tomography takes it: arrays in, scores out, on the same ONNX session as production."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from opmon.config import MonitorSettings
from opmon.config.robustness import RobustnessSettings
from opmon.errors import InputError, ModelError
from opmon.problems import traits
from opmon.robustness.codecs import Pictures, Unchanged
from opmon.robustness.evaluation import Evaluation
from opmon.robustness.quality import Quality, kernel_distance, population_shift, text_distance
from opmon.robustness.run import Codec
from opmon.scoring.graph.monitor_graph import ACTIVATIONS
from opmon.scoring.inputs.images import ImageReader
from opmon.scoring.inputs.tensors import Fed
from opmon.scoring.scorer import Scorer
from opmon.stages.models import answering
from opmon.stages.tomography_truth import labelled, names_of
from opmon.tables import of_rows
from opmon.types import Array, Batch, Document


@dataclass(frozen=True, eq=False)
class Prepared:
    """Inputs as one array, and the model over it."""

    evaluation: Evaluation
    codec: Codec
    model: Callable[[Array], Array]
    quality: Quality | None
    left_out: int
    """Rows that cannot be fed, or have no label."""
    reading: str = ""
    """How the model's outputs are read."""


@dataclass(frozen=True)
class _Feeding:
    """From one array to the model's tensors: (name, width, shape of one row, type) of each."""

    parts: tuple[tuple[str, int, tuple[int, ...], np.dtype[np.generic]], ...]

    def tensors(self, values: Array) -> dict[str, Array]:
        if len(self.parts) == 1:
            name, _, shape, dtype = self.parts[0]
            return {name: _of_type(values, name, dtype).reshape(-1, *shape)}
        found, at = {}, 0
        for name, width, shape, dtype in self.parts:
            part = values[:, at : at + width]
            if np.issubdtype(dtype, np.integer):
                part = np.rint(part)
            found[name] = _of_type(part, name, dtype).reshape(-1, *shape)
            at += width
        return found


def _of_type(values: Array, name: str, dtype: np.dtype[np.generic]) -> Array:
    """The values as the model's input ``name`` takes them: whole numbers have none for what is missing."""
    if dtype.kind in "iub" and values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(
            f"a perturbation made values of the input {name} missing or infinite, which {dtype} cannot hold: for "
            "the perturbation missing say fill: median, or let it change other columns"
        )
    return values.astype(dtype, copy=False)


def prepared(
    scorer: Scorer,
    settings: RobustnessSettings,
    rows: Sequence[Document],
    truth: Sequence[str | None],
    weights: Sequence[float] | None,
    traced: Scorer | None = None,
) -> Prepared:
    """Everything a tomography takes, from rows as a source or a task holds them.

    ``truth`` None at a place: no label. ``traced`` gives the last hidden layer, for the quality of pictures.
    """
    batch = of_rows(rows)
    fed = _answered(scorer, batch, scorer.tensors(batch))
    own = settings.relation == "own"
    kept, known = (np.arange(len(fed.rows)), None) if own else labelled(scorer, fed.rows, truth)
    inputs, feeding = _joined({name: values[kept] for name, values in fed.tensors.items()}, settings.kind)
    if len(inputs) < 2:
        wanted = "labelled inputs" if settings.relation == "label" else "inputs"
        raise InputError(f"a tomography needs at least two {wanted} that the model takes; got {len(inputs)}")
    chosen = fed.rows[kept]
    told = [(rows[row], None if own else truth[row]) for row in chosen.tolist()]
    evaluation = Evaluation(
        inputs,
        known,
        None if weights is None else np.asarray(weights, np.float64)[chosen],
        scorer.outputs.problem,
        settings.tolerance,
        names_of(told),
    )
    codec: Codec = Unchanged()
    if settings.kind == "image":
        codec = _pictures(scorer, settings, inputs)
    quality = _quality(settings, feeding, traced) if settings.quality else None
    return Prepared(evaluation, codec, _model(scorer, feeding), quality, len(rows) - len(inputs), repr(scorer.outputs))


def _answered(scorer: Scorer, batch: pa.RecordBatch, fed: Fed) -> Fed:
    """Without the inputs that the model does not answer because a value of them is missing."""
    places = [place for place in range(len(fed.rows)) if fed.gap(place) is not None]
    if not places:
        return fed
    rows = batch.take(pa.array(fed.rows[places]))
    rejected = {row: why for part in scorer.score([Batch(0, 0, rows)]) for row, why in part.rejected.items()}
    return fed.without({places[row]: why for row, why in rejected.items()})


def _pictures(scorer: Scorer, settings: RobustnessSettings, inputs: Array) -> Pictures:
    """How the model holds a picture: as the monitor's ``inputs.image`` lays it out, or as the inputs show."""
    reader = scorer.reader
    if not isinstance(reader, ImageReader) or settings.span is not None:
        return Pictures.like(inputs, settings.size, settings.span)
    plan = reader.plan
    ends = [(0.0, 255.0)] * reader.channels
    if np.issubdtype(inputs.dtype, np.floating):
        mean, deviation = (np.broadcast_to(values, reader.channels) for values in (plan.mean, plan.std))
        ends = [
            ((0 - m) / d, (255 * plan.scale - m) / d) for m, d in zip(mean.tolist(), deviation.tolist(), strict=True)
        ]
    black, white = (tuple(values) for values in zip(*ends, strict=True))
    if len(set(ends)) == 1:
        black, white = black[0], white[0]
    return Pictures(
        reader.height, reader.width, reader.channels, reader.channels_first, black, white, inputs.dtype,
        inputs.shape[1:], 255,
    )  # fmt: skip


def open_traced(path: Path, settings: MonitorSettings) -> Scorer | None:
    """The model with its last hidden layer; None where it has none that is found."""
    try:
        return Scorer.open(path, settings.problem, **answering(settings), layer=settings.layer, traced=True)
    except ModelError:
        return None


def _joined(tensors: Mapping[str, Array], kind: str) -> tuple[Array, _Feeding]:
    parts = tuple(
        (name, int(np.prod(values.shape[1:], dtype=int)), values.shape[1:], values.dtype)
        for name, values in tensors.items()
    )
    if len(parts) == 1:
        (values,) = tensors.values()
        if (values.dtype == np.object_) != (kind == "text"):
            holds = "texts" if values.dtype == np.object_ else "numbers"
            raise InputError(f"the model takes {holds}, and kind is {kind!r}; say text for texts, image or table else")
        flat = values if kind == "image" else values.reshape(len(values), -1)
        return (flat.reshape(-1) if kind == "text" else flat), _Feeding(parts)
    if kind != "table" or any(dtype == np.object_ for *_, dtype in parts):
        raise ModelError(
            f"the model takes {len(parts)} inputs ({', '.join(name for name, *_ in parts[:6])}); {kind} perturbations "
            f"are for a model with one input, and table ones for inputs of numbers"
        )
    columns = [values.reshape(len(values), -1).astype(np.float64) for values in tensors.values()]
    return np.concatenate(columns, axis=1), _Feeding(parts)


def _model(scorer: Scorer, feeding: _Feeding) -> Callable[[Array], Array]:
    outputs = scorer.outputs

    def scores(values: Array) -> Array:
        found = outputs.ordered(scorer.run([outputs.score], feeding.tensors(values))[0].reshape(len(values), -1))
        if traits(outputs.problem).of_numbers or found.shape[1] > 1:
            return found
        return np.concatenate([np.zeros_like(found) if outputs.meaning == "logits" else 1 - found, found], axis=1)

    return scores


def _extractor(path: Path) -> Callable[[Array], Array]:
    """The first output of an ONNX file that takes the same pictures as the model."""
    from opmon.scoring.session import open_session

    session = open_session(path)
    tensor = session.inputs[0]
    if len(session.inputs) != 1:
        raise InputError(f"the extractor {path} takes {len(session.inputs)} inputs; it must take the pictures alone")
    shape = [size if size is not None else -1 for size in tensor.shape[1:]]

    def features(values: Array) -> Array:
        rows = values.reshape(len(values), *shape) if shape.count(-1) <= 1 else values
        return np.asarray(session.run([session.outputs[0].name], {tensor.name: rows.astype(np.float32)})[0])

    return features


def _quality(settings: RobustnessSettings, feeding: _Feeding, traced: Scorer | None) -> Quality:
    if settings.kind == "text":
        return text_distance
    if settings.kind == "table":
        return population_shift
    if settings.extractor is not None:
        return kernel_distance(_extractor(settings.extractor))
    if traced is None:
        return kernel_distance(lambda values: values)

    def hidden(values: Array) -> Array:
        return traced.run([ACTIVATIONS], feeding.tensors(values))[0]

    return kernel_distance(hidden)

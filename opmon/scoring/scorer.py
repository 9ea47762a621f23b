"""The model at work: batches of production inputs in, predictions and auxiliary variables out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.scoring.ahead import ahead
from opmon.scoring.batching import size_by_memory, size_by_probe
from opmon.scoring.compiled import (
    ArrayFunction,
    bounded,
    compile_graph,
    functions_of,
    is_added,
    serialised,
    variable_outputs,
)
from opmon.scoring.graph import ACTIVATIONS, PREDICTED
from opmon.scoring.inputs import Fed, plan_inputs
from opmon.scoring.model import read_model, without_zipmap
from opmon.scoring.outputs import Answers, Outputs, Scores, plan_outputs
from opmon.scoring.readers import Reader, ReaderPlan
from opmon.scoring.reference import Reference
from opmon.scoring.session import Device, Session, Tensor, open_session
from opmon.scoring.variables import FLOOR
from opmon.types import Batch, Problem

if TYPE_CHECKING:
    from opmon.plugins import Head

TRACED = (ACTIVATIONS, PREDICTED)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What the model said of one batch. ``rows`` are row numbers in the slice, of the inputs that could be scored.

    ``predictions`` holds names of classes, or float64; ``variables`` one float32 per input, larger = more suspicious;
    ``rejected`` says why each of the other rows could not be scored. ``activations`` are those of the layer, one row
    per input, of a scorer opened with ``traced``.
    """

    slice_index: int
    rows: NDArray[np.int64]
    predictions: NDArray[Any]
    variables: Mapping[str, NDArray[np.float32]]
    rejected: Mapping[int, str]
    activations: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """The activations of one batch's good rows: what a reference is fitted on."""

    rows: NDArray[np.int64]
    activations: NDArray[np.float32]
    predicted: NDArray[np.int64]
    """The column of the predicted class; 0 for regression."""
    predictions: NDArray[Any]
    tensors: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Scorer:
    """A model that is loaded, and how its inputs and outputs are to be read. Made by :meth:`open`."""

    session: Session
    outputs: Outputs
    features: tuple[str, ...] | None = None
    tensor: str | None = None
    batch_size: int = 1024
    """0: found by trying, when the first batch comes."""
    allow_missing: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """The outputs of the variables that are computed in the graph."""
    functions: Mapping[str, ArrayFunction] = field(default_factory=dict)
    """The variables that are computed from the activations and predicted classes, outside of the graph."""
    reader: Reader | None = None
    """What makes tensors of rows, where they are not plain numbers."""
    signature: tuple[str, ...] = ()
    traced: bool = False
    """Whether :meth:`score` gives activations too."""
    _found: dict[str, int] = field(default_factory=dict, repr=False)
    _plans: dict[pa.Schema, Reader] = field(default_factory=dict, repr=False)

    @classmethod
    def open(
        cls,
        path: Path,
        problem: Problem,
        classes: Sequence[Any] | None = None,
        features: Sequence[str] | None = None,
        tensor: str | None = None,
        device: Device = "auto",
        threads: int | None = None,
        batch_size: int | None = None,
        output: str | None = None,
        scores: Scores = "auto",
        allow_missing: bool = False,
        heads: Mapping[str, Head] | None = None,
        reference: Reference | None = None,
        layer: str | None = None,
        traced: bool = False,
        reading: ReaderPlan | None = None,
        signature: Sequence[str] = (),
    ) -> Scorer:
        """Load the ONNX file ``path``.

        ``classes`` are the names of the score's columns where the file does not say them (or says numbers);
        ``batch_size`` is found where it is not given: by the memory that the activations take, or, on a GPU, by trying.
        ``features`` and ``tensor`` name the columns that are fed; ``output`` and ``scores`` override what the graph
        tells.
        ``allow_missing`` feeds null as NaN, to a model that knows what to do with it.

        ``heads`` are auxiliary variables to compute beside those that come with the probabilities, from ``reference``
        where they need one, at ``layer`` where it is not the reference's. A file that opmon compiled has its own.
        ``reading`` says how pictures, text or anything else than numbers become tensors; ``signature`` names the
        columns that the model was logged with, which are used where nothing else says which to take.
        ``traced`` gives the activations too, and the predicted classes: see :meth:`traces`.
        """
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size must be at least 1; got {batch_size}")
        if problem not in ("classification", "regression"):
            raise InputError(f"problem must be classification or regression; got {problem!r}")
        model = read_model(path)
        plain = without_zipmap(model)
        session = open_session(path if plain is None else plain.SerializeToString(), device, threads)
        model = model if plain is None else plain
        variables = variable_outputs(model)
        own = [item for item in session.outputs if not is_added(item.name, variables)]
        outputs = plan_outputs(model, own, problem, classes, output, scores)
        functions: dict[str, ArrayFunction] = {}
        if heads or traced:
            if reference is not None:
                reference.require_model(path)
            score = next(item for item in own if item.name == outputs.score)
            compiled = compile_graph(model, outputs, score, heads or {}, reference, layer, traced=traced)
            session = open_session(serialised(compiled.model), device, threads, path.parent)
            variables = {**variables, **compiled.outputs}
            functions = functions_of(compiled, heads or {}, reference)
        return cls(
            session,
            outputs,
            tuple(features) if features else None,
            tensor,
            batch_size or (size_by_memory(model) if session.device == "cpu" else 0),
            allow_missing,
            variables,
            functions,
            None if reading is None else reading.reader(session.inputs),
            tuple(signature),
            traced,
        )

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes in the order of the score's columns, where they are known."""
        return self.outputs.classes

    def describe(self) -> dict[str, Any]:
        """What ``opmon check`` shows of it."""
        return {
            "device": self.session.device,
            "providers": list(self.session.providers),
            "inputs": [str(tensor) for tensor in self.session.inputs],
            "outputs": [str(tensor) for tensor in self.session.outputs],
            "score": f"{self.outputs.score} ({self.outputs.meaning})",
            "classes": list(self.classes) if self.classes is not None else None,
        }

    def score(self, batches: Iterable[Batch]) -> Iterator[Scored]:
        """One answer for each batch, in order. The next batch is read and prepared while the model is at work."""
        wanted = (*self.outputs.names, *self.variables.values(), *self._traced)
        for batch, fed in ahead(self._prepared(batches)):
            yield self._scored(batch, fed, self._run(wanted, fed.tensors, len(fed.rows)))

    def traces(self, batches: Iterable[Batch]) -> Iterator[Traced]:
        """Activations and predicted classes of each batch, of a scorer opened with ``traced``; else of no neurons."""
        names = self._traced
        for batch, fed in ahead(self._prepared(batches)):
            pieces = list(self._run((*self.outputs.names, *names), fed.tensors, len(fed.rows)))
            if not pieces:
                continue
            count = len(self.outputs.names)
            answers = _joined([self.outputs.read(piece[:count]) for piece in pieces])
            found = [np.concatenate([piece[count + i] for piece in pieces]) for i in range(len(names))]
            activations = found[0] if found else np.empty((len(answers.valid), 0), np.float32)
            predicted = found[1] if len(found) > 1 else np.zeros(len(activations), np.int64)
            valid = answers.valid & np.isfinite(activations).all(axis=1)
            tensors = {name: values[valid] for name, values in fed.tensors.items()}
            rows = (batch.first_row + fed.rows)[valid]
            yield Traced(rows, activations[valid], predicted[valid], answers.predictions[valid], tensors)

    @property
    def _traced(self) -> tuple[str, ...]:
        """The outputs with the activations and the predicted class, where asked for; regression has no class."""
        if not (self.functions or self.traced):
            return ()
        return tuple(name for name in TRACED if any(item.name == name for item in self.session.outputs))

    def columns(self, batch: pa.RecordBatch) -> tuple[str, ...]:
        """The columns that are read of batches such as this one."""
        return self._plan(batch).columns

    def tensors(self, rows: pa.RecordBatch) -> Fed:
        """The rows as the model takes them."""
        return self._plan(rows).tensors(rows)

    def _prepared(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Fed]]:
        for batch in batches:
            if batch.rows.num_rows:
                yield batch, self._plan(batch.rows).tensors(batch.rows)

    def _scored(self, batch: Batch, fed: Fed, pieces: Iterator[list[Any]]) -> Scored:
        rejected = {batch.first_row + row: reason for row, reason in fed.rejected.items()}
        count, answers, variables, traced = len(self.outputs.names), [], [], []
        for piece in pieces:
            answers.append(self.outputs.read(piece[:count]))
            variables.append(dict(zip(self.variables, piece[count:], strict=False)))
            traced.append(piece[count + len(self.variables) :])
        if not answers:
            return Scored(batch.slice_index, np.empty(0, np.int64), self._no_predictions(), {}, rejected)
        whole = _joined(answers)
        found = {**whole.variables, **_finite(variables), **self._outside(traced)}
        rows, good = batch.first_row + fed.rows, whole.valid
        for row in rows[~good].tolist():
            rejected[row] = "the model's answer is not a number"
        activations = _activations(traced) if self.traced else None
        if activations is not None:
            finite = np.isfinite(activations).all(axis=1)
            for row in rows[good & ~finite].tolist():
                rejected[row] = "an activation of the layer is not a number"
            good = good & finite
        if not good.all():
            found = {name: values[good] for name, values in found.items()}
            rows, activations = rows[good], None if activations is None else activations[good]
        return Scored(batch.slice_index, rows, whole.predictions[good], found, rejected, activations)

    def _outside(self, traced: Sequence[Sequence[NDArray[Any]]]) -> dict[str, NDArray[np.float32]]:
        """The variables of heads that are no graph: for the whole batch at once, which is quicker for many classes."""
        if not self.functions:
            return {}
        activations = np.concatenate([piece[0] for piece in traced])
        if len(traced[0]) > 1:
            predicted = np.concatenate([piece[1] for piece in traced])
        else:
            predicted = np.zeros(len(activations), np.int64)
        return {
            name: np.maximum(bounded(np.asarray(function(activations, predicted), np.float32)), FLOOR)
            for name, function in self.functions.items()
        }

    def _run(self, names: Sequence[str], tensors: Mapping[str, NDArray[Any]], count: int) -> Iterator[list[Any]]:
        """The outputs for pieces of ``batch_size`` rows, or of the size that is fixed in the model."""
        fixed = next((tensor.shape[0] for tensor in self.session.inputs if tensor.shape), None)
        size = fixed or self.batch_size or self._probed(names, tensors, count)
        for start in range(0, count, size):
            piece = {name: values[start : start + size] for name, values in tensors.items()}
            have = min(size, count - start)
            if fixed and have < fixed:
                piece = {name: np.resize(values, (fixed, *values.shape[1:])) for name, values in piece.items()}
            results = self.session.run(names, piece)
            yield [result[:have] for result in results]

    def _probed(self, names: Sequence[str], tensors: Mapping[str, NDArray[Any]], count: int) -> int:
        if count and "size" not in self._found:

            def run(size: int) -> None:
                self.session.run(names, {name: values[:size] for name, values in tensors.items()})

            self._found["size"] = size_by_probe(run, count)
        return self._found.get("size", 1)

    def _plan(self, batch: pa.RecordBatch) -> Reader:
        if self.reader is not None:
            return self.reader
        plan = self._plans.get(batch.schema)
        if plan is None:
            features = self.features
            if features is None and self.tensor is None and _fits(self.signature, self.session.inputs, batch):
                features = self.signature
            plan = plan_inputs(self.session.inputs, batch, features, self.tensor, self.allow_missing)
            self._plans[batch.schema] = plan
        return plan

    def _no_predictions(self) -> NDArray[Any]:
        return np.empty(0, np.float64 if self.outputs.problem == "regression" else np.str_)


def _fits(names: tuple[str, ...], inputs: Sequence[Tensor], batch: pa.RecordBatch) -> bool:
    """Whether the signature's columns are there, and are as many numbers as the model's only input takes."""
    if len(names) < 2 or len(inputs) != 1 or len(inputs[0].shape) != 2 or not set(names) <= set(batch.schema.names):
        return False
    return inputs[0].shape[1] in (None, len(names))


def _finite(pieces: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[np.float32]]:
    return {name: bounded(np.concatenate([piece[name] for piece in pieces])) for name in pieces[0]}


def _activations(traced: Sequence[Sequence[NDArray[Any]]]) -> NDArray[np.float32]:
    pieces = [piece[0].reshape(len(piece[0]), -1) for piece in traced]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _joined(answers: Sequence[Answers]) -> Answers:
    if len(answers) == 1:
        return answers[0]
    names = answers[0].variables
    return Answers(
        np.concatenate([answer.predictions for answer in answers]),
        {name: np.concatenate([answer.variables[name] for answer in answers]) for name in names},
        np.concatenate([answer.valid for answer in answers]),
    )

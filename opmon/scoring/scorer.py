"""The model at work: batches of production inputs in, predictions and auxiliary variables out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.problems import traits
from opmon.scoring._ahead import ahead
from opmon.scoring._running import Runner, Tensors
from opmon.scoring.devices import Device
from opmon.scoring.graph.compiled import ArrayFunction, bounded
from opmon.scoring.graph.monitor_graph import ACTIVATIONS, PREDICTED
from opmon.scoring.inputs.columns import AS_NAN, Missing
from opmon.scoring.inputs.feeding import Feeding
from opmon.scoring.inputs.readers import Reader, ReaderPlan
from opmon.scoring.inputs.tensors import Fed
from opmon.scoring.loading import load
from opmon.scoring.outputs.meaning import Outputs, Predictions, Scores
from opmon.scoring.outputs.sets import HALF
from opmon.scoring.outputs.variables import FLOOR
from opmon.scoring.reference.fitted import Reference
from opmon.scoring.scored import Scored, Traced
from opmon.scoring.session import Session
from opmon.spellings import Classes
from opmon.types import Array, Batch, Json, Problem

if TYPE_CHECKING:
    from opmon.abc import Head

TRACED = (ACTIVATIONS, PREDICTED)


_NO_ACTIVATION = "an activation of the layer is not a number"


@dataclass(frozen=True, eq=False)
class Scorer:
    """A model that is loaded, and how its inputs and outputs are to be read. Made by :meth:`open`."""

    runner: Runner
    feeding: Feeding
    outputs: Outputs
    variables: Mapping[str, str] = field(default_factory=dict)
    """The outputs of the variables that are computed in the graph."""
    functions: Mapping[str, ArrayFunction] = field(default_factory=dict)
    """The variables that are computed from the activations and predicted classes, outside of the graph."""
    traced: bool = False
    """Whether the layer's activations are given with every batch."""

    @classmethod
    def open(
        cls,
        path: Path,
        problem: Problem,
        classes: Classes | None = None,
        features: Sequence[str] | None = None,
        tensor: str | None = None,
        device: Device = "auto",
        threads: int | None = None,
        batch_size: int | None = None,
        lanes: int | None = None,
        output: str | None = None,
        scores: Scores = "auto",
        threshold: float = HALF,
        missing: Missing = AS_NAN,
        heads: Mapping[str, Head] | None = None,
        reference: Reference | None = None,
        layer: str | None = None,
        traced: bool = False,
        reading: ReaderPlan | None = None,
        signature: Sequence[str] = (),
    ) -> Scorer:
        """Load the ONNX file ``path``.

        ``classes`` are the names of the score's columns where the file does not say them (or says numbers);
        ``batch_size`` is found where it is not given: by the memory that the activations take, and by trying.
        ``threads`` None is all cores; small models run on several ``lanes`` at once: see
        :class:`~opmon.scoring._running.Runner`.
        ``features`` and ``tensor`` name the columns that are fed; ``output`` and ``scores`` override what the graph
        tells. ``threshold`` is the score from which on a class holds, where several may.
        ``missing`` says what is fed where a value is missing: NaN, or the model's word for it, unless told otherwise.

        ``heads`` are auxiliary variables to compute beside those that come with the probabilities, from ``reference``
        where they need one, at ``layer`` where it is not the reference's. A file that opmon compiled has its own.
        ``reading`` says how pictures, text or anything else than numbers become tensors; ``signature`` names the
        columns that the model was logged with, which are used where nothing else says which to take.
        ``traced`` gives the activations too, and the predicted classes: see :meth:`traces`.
        """
        loaded = load(
            path, problem, classes, device, threads, batch_size, lanes, output, scores, heads, reference, layer, traced
        )
        takes = loaded.runner.session.inputs
        feeding = Feeding(
            takes,
            tuple(features) if features else None,
            tensor,
            missing,
            None if reading is None else reading.reader(takes),
            tuple(signature),
            loaded.missing_text,
        )
        outputs = replace(loaded.outputs, threshold=threshold)
        return cls(loaded.runner, feeding, outputs, loaded.variables, loaded.functions, traced)

    @property
    def session(self) -> Session:
        return self.runner.session

    @property
    def reader(self) -> Reader | None:
        """The reader that makes tensors of rows which are not plain numbers."""
        return self.feeding.reader

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes in the order of the score's columns, where they are known."""
        return self.outputs.classes

    def describe(self) -> dict[str, Json]:
        """The facts that ``opmon check`` shows."""
        return {
            "device": self.session.device,
            "placement": str(self.session.placement),
            "inputs": [str(tensor) for tensor in self.session.inputs],
            "outputs": [str(tensor) for tensor in self.session.outputs],
            "score": f"{self.outputs.score} ({self.outputs.meaning})",
            "classes": list(self.classes) if self.classes is not None else None,
        }

    def keeping_scores(self) -> Scorer:
        """The same, with the probabilities of all classes in its answers."""
        return replace(self, outputs=replace(self.outputs, keeps_scores=True))

    def score(self, batches: Iterable[Batch]) -> Iterator[Scored]:
        """One answer for each batch, in order. The next batches are read and prepared while the model is at work."""
        names = (*self.outputs.names, *self.variables.values(), *self._traced)
        for (batch, fed), found in self.runner.stream(names, ahead(self._prepared(batches), depth=1), self._read):
            yield self._scored(batch, fed.without(found.failed) if found.failed else fed, found.pieces)

    def traces(self, batches: Iterable[Batch], refused: Counter[str] | None = None) -> Iterator[Traced]:
        """Activations and predicted classes of each batch, of a scorer opened with ``traced``; else of no neurons.

        ``refused`` is told why rows are left out, and how many for each reason.
        """
        refused = Counter() if refused is None else refused
        names = (*self.outputs.names, *self._traced)
        for (batch, whole), found in self.runner.stream(
            names, ahead(self._prepared(batches), depth=1), self._read_traced
        ):
            fed = whole.without(found.failed)
            refused.update(fed.rejected.values())
            if not found.pieces:
                continue
            said = Predictions.joined(found.pieces)
            count, activations, predicted = len(said.valid), said.activations, said.predicted
            activations = np.empty((count, 0), np.float32) if activations is None else activations
            predicted = np.zeros(count, np.int64) if predicted is None else predicted
            finite = np.isfinite(activations).all(axis=1)
            refused.update(_no_answer(fed.gap(place)) for place in np.flatnonzero(~said.valid).tolist())
            refused.update([_NO_ACTIVATION] * int((said.valid & ~finite).sum()))
            valid = said.valid & finite
            tensors = {name: values[valid] for name, values in fed.tensors.items()}
            rows = (batch.first_row + fed.rows)[valid]
            predictions = said.predictions[valid]
            yield Traced(rows, activations[valid], predicted[valid], predictions, tensors, said.classes)

    def run(self, names: Sequence[str], tensors: Tensors) -> list[Array]:
        """The model's outputs called ``names`` for rows that are tensors already, as many as there are."""
        return self.runner.run(names, tensors)

    def columns(self, batch: pa.RecordBatch) -> tuple[str, ...]:
        """The columns that are read of batches such as this one."""
        return self.feeding.plan(batch).columns

    def tensors(self, rows: pa.RecordBatch) -> Fed:
        """The rows as the model takes them."""
        return self.feeding.plan(rows).tensors(rows)

    def exact(self, rows: pa.RecordBatch) -> Fed:
        """The rows as the model takes them, yet with numbers in float64 where it takes fewer digits.

        And with None where it is given its own word for a missing text.
        """
        return self.feeding.exact().plan(rows).tensors(rows)

    def _prepared(self, batches: Iterable[Batch]) -> Iterator[tuple[tuple[Batch, Fed], Tensors]]:
        for batch in batches:
            if batch.rows.num_rows:
                fed = self.tensors(batch.rows)
                yield (batch, fed), fed.tensors

    @property
    def _traced(self) -> tuple[str, ...]:
        """The outputs with the activations and the predicted class, where asked for; regression has no class."""
        if not (self.functions or self.traced):
            return ()
        return tuple(name for name in TRACED if any(item.name == name for item in self.session.outputs))

    def _read(self, outputs: Sequence[Array]) -> Predictions:
        """Read the outputs of :meth:`score` for some rows."""
        said = self._read_traced([*outputs[: len(self.outputs.names)], *outputs[self._own :]])
        columns = outputs[len(self.outputs.names) : self._own]
        own = {name: bounded(np.array(column)) for name, column in zip(self.variables, columns, strict=True)}
        return replace(said, variables={**said.variables, **own})

    def _read_traced(self, outputs: Sequence[Array]) -> Predictions:
        """Read the outputs without the variables that are computed in the graph."""
        count = len(self.outputs.names)
        said, traced = self.outputs.read(outputs[:count]), outputs[count:]
        if not traced:
            return said
        activations = traced[0].reshape(len(said.valid), -1)
        return replace(said, activations=activations, predicted=traced[1] if len(traced) > 1 else None)

    @property
    def _own(self) -> int:
        """The number of outputs before those that are traced."""
        return len(self.outputs.names) + len(self.variables)

    def _scored(self, batch: Batch, fed: Fed, pieces: Sequence[Predictions]) -> Scored:
        rejected = {batch.first_row + row: reason for row, reason in fed.rejected.items()}
        if not pieces:
            nothing = np.empty(0, np.float64 if traits(self.outputs.problem).of_numbers else np.str_)
            return Scored(batch.slice_index, np.empty(0, np.int64), nothing, {}, rejected, missing=fed.missing)
        said = Predictions.joined(pieces)
        variables = {**said.variables, **self._outside(said)}
        rows, good = batch.first_row + fed.rows, said.valid
        for place in np.flatnonzero(~good).tolist():
            rejected[int(rows[place])] = _no_answer(fed.gap(place))
        activations = said.activations if self.traced else None
        if activations is not None:
            finite = np.isfinite(activations).all(axis=1)
            for row in rows[good & ~finite].tolist():
                rejected[row] = _NO_ACTIVATION
            good = good & finite
        predictions, scores = said.predictions, said.scores
        if not good.all():
            variables = {name: values[good] for name, values in variables.items()}
            rows, activations = rows[good], None if activations is None else activations[good]
            predictions, scores = predictions[good], None if scores is None else scores[good]
        return Scored(
            batch.slice_index,
            rows,
            predictions,
            variables,
            rejected,
            activations,
            said.unlike,
            said.classes,
            fed.missing,
            scores,
        )

    def _outside(self, said: Predictions) -> dict[str, NDArray[np.float32]]:
        """The variables of heads that are no graph: for the whole batch at once, which is quicker for many classes."""
        if said.activations is None:
            return {}
        predicted = np.zeros(len(said.valid), np.int64) if said.predicted is None else said.predicted
        return {
            name: np.maximum(bounded(np.asarray(function(said.activations, predicted), np.float32)), FLOOR)
            for name, function in self.functions.items()
        }


def _no_answer(gap: str | None) -> str:
    if gap is not None:
        return f"column {gap!r} is empty, and the model gives no answer without it"
    return "the model's answer is not a number, or no probabilities"

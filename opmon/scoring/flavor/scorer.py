"""Scores by a model's own flavor, in a process of its own: slower than ONNX Runtime, with the answers as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import ModelError, SourceError
from opmon.problems import traits
from opmon.scoring.flavor.feeding import Piece, pieces
from opmon.scoring.flavor.process import ModelFailed, Worker, WorkerFailed
from opmon.scoring.inputs.classes import class_names
from opmon.scoring.inputs.readers import ReaderPlan
from opmon.scoring.inputs.sets import logged_sets
from opmon.scoring.outputs.meaning import Meaning, Outputs, Scores
from opmon.scoring.outputs.planning import chosen_classes
from opmon.scoring.outputs.sets import HALF
from opmon.scoring.scored import Scored
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Array, Batch, Document, Json, Numbers, Problem, Signature
from opmon.values import canonical_class

ROWS = 16_384
"""The most inputs that go to the model at a time."""
_PIECES = 32
"""The number of pieces in which a batch that the model fails on is asked again."""
_HOPELESS, _FATAL = 24, 8
"""After so many single inputs in a row that the model fails on, the rest is not tried one by one; one that kills the
process counts as several."""

_Answer = tuple[Document, pa.Table]


@dataclass
class FlavorScorer:
    """Scores batches by what the model answers in its own process.

    A batch on which the model fails, hangs or dies is asked again in pieces, so that a bad input costs only itself.
    """

    worker: Worker
    problem: Problem = "classification"
    classes: tuple[str, ...] | None = None
    spellings: Spellings = AS_SPELT
    meaning: Scores = "auto"
    features: tuple[str, ...] = ()
    """The columns that the model is given; all that are not ``left_out`` where nothing says which."""
    left_out: frozenset[str] = frozenset()
    signature: Signature | None = None
    reading: ReaderPlan | None = None
    """How rows become tensors, where they hold pictures or the like."""
    threshold: float = HALF
    """The score from which on a class holds, where several may."""
    keeps_scores: bool = False
    """Whether the scores are given with the answers."""
    _own: tuple[str, ...] | None = None
    _failures: int = 0
    _rows: int = ROWS

    def score(self, batches: Iterable[Batch]) -> Iterator[Scored]:
        """One answer for each batch, in order."""
        for batch in batches:
            if batch.rows.num_rows:
                yield self._answered(batch)

    def keeping_scores(self) -> FlavorScorer:
        """The same, in the same process, with the probabilities of all classes in its answers."""
        return replace(self, keeps_scores=True)

    def describe(self) -> dict[str, Json]:
        """The facts that ``opmon check`` shows; loads the model."""
        facts = self.worker.start()
        return {
            "flavor": facts.get("flavor"),
            "python": self.worker.python,
            "classes": list(self._known() or ()) or None,
        }

    def ask(self, rows: pa.RecordBatch) -> _Answer:
        """The model's own answer to those of some rows that it can answer: a header, and a table with ``labels``,
        ``scores`` or both; an error where it can answer none."""
        answers, reason = [], "there are no rows"
        for piece in self._given(rows):
            reason = next(iter(piece.rejected.values()), reason)
            for _, answer in self._asked(piece.rows):
                if isinstance(answer, str):
                    reason = answer
                else:
                    answers.append(answer)
        if not answers:
            raise ModelError(reason)
        return answers[0][0], pa.concat_tables([table for _, table in answers], promote_options="permissive")

    def close(self) -> None:
        self.worker.stop()

    def _answered(self, batch: Batch) -> Scored:
        rejected: dict[int, str] = {}
        parts: list[tuple[NDArray[np.int64], Document, pa.Table]] = []
        for piece in self._given(batch.rows):
            rejected.update(piece.rejected)
            for start, answer in self._asked(piece.rows):
                if isinstance(answer, str):
                    rejected[int(piece.places[start])] = answer
                else:
                    header, table = answer
                    parts.append((piece.places[start : start + table.num_rows], header, table))
        return self._read(batch, parts, rejected)

    def _asked(self, rows: pa.RecordBatch) -> Iterator[tuple[int, _Answer | str]]:
        """The answers to some rows, by the number of the first; for a row without one, the reason."""
        start = 0
        while start < rows.num_rows:
            piece = rows.slice(start, self._rows)
            yield from self._tried(start, piece)
            start += piece.num_rows

    def _tried(self, start: int, rows: pa.RecordBatch) -> Iterator[tuple[int, _Answer | str]]:
        try:
            answer = self._answer(rows)
        except (ModelFailed, WorkerFailed) as exc:
            yield from self._in_pieces(start, rows, exc)
        else:
            self._failures = 0
            yield start, answer

    def _in_pieces(self, start: int, rows: pa.RecordBatch, why: Exception) -> Iterator[tuple[int, _Answer | str]]:
        """Ask for the same rows, fewer at a time; in few sizes, because starting the process again is slow."""
        fatal = isinstance(why, WorkerFailed)
        if self._failures >= _HOPELESS:
            if fatal:
                raise ModelError(f"the model gives no answers: {why}. Does it run by itself (mlflow models predict)?")
        elif rows.num_rows > 1:
            size = -(-rows.num_rows // _PIECES)
            before = self._failures
            for first in range(0, rows.num_rows, size):
                yield from self._tried(start + first, rows.slice(first, size))
            if fatal and self._failures == before == 0:
                self._rows = max(1, min(self._rows, size))  # not the inputs were too much for it, but their number
            return
        self._failures += _FATAL if fatal else 1
        yield from ((start + row, f"the model failed: {why}") for row in range(rows.num_rows))

    def _answer(self, rows: pa.RecordBatch) -> _Answer:
        self.worker.send(_stream(rows), _wanted(self.problem))
        header, table = self.worker.answer()
        if table.num_rows != rows.num_rows:
            raise ModelFailed(f"it gave {table.num_rows} answers for {rows.num_rows} inputs")
        return header, table

    def _given(self, rows: pa.RecordBatch) -> Iterator[Piece]:
        """What the model is given of some rows: tensors where they are read as such, else the columns it takes."""
        if self.reading is not None:
            yield from pieces(self.reading, self.signature, rows)
        else:
            yield Piece(self._columns(rows), np.arange(rows.num_rows), {})

    def _columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that the model takes, under the names it knows them by."""
        wanted = self.features or (() if self.signature is None else self.signature.names)
        names = list(wanted) or [name for name in rows.schema.names if name not in self.left_out]
        missing = [name for name in names if rows.schema.get_field_index(name) < 0]
        if missing or not names:
            raise SourceError(
                f"the inputs have no column {', '.join(map(repr, missing[:5])) or 'for the model'}; they have: "
                f"{', '.join(rows.schema.names)}. Name the model's columns in inputs.features, in its order"
            )
        given = rows.select(names)
        own = () if self.signature is None else self.signature.names
        if self.features and len(own) == len(names) and set(own) != set(names):
            given = given.rename_columns(list(own))
        return given

    def _known(self) -> tuple[str, ...] | None:
        """The names of the classes in the order of the model's scores, where they are known."""
        if self._own is None:
            own = self.worker.told.get("classes")
            self._own = () if own is None else tuple(canonical_class(name) for name in own)
        return self._chosen(self._own or None)

    def _chosen(self, own: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if own is None:
            return self.classes
        if self.classes is None:
            return own
        return chosen_classes(self.classes, own, self.spellings)

    def _read(
        self,
        batch: Batch,
        parts: Sequence[tuple[NDArray[np.int64], Document, pa.Table]],
        rejected: dict[int, str],
    ) -> Scored:
        reasons = {batch.first_row + row: reason for row, reason in rejected.items()}
        nothing: Array = np.empty(0, np.float64 if traits(self.problem).of_numbers else np.str_)
        if not parts:
            return Scored(batch.slice_index, np.empty(0, np.int64), nothing, {}, reasons)
        rows = np.concatenate([numbers for numbers, _, _ in parts])
        table = pa.concat_tables([part for _, _, part in parts], promote_options="permissive").combine_chunks()
        if traits(self.problem).of_numbers:
            predictions, good = self._numbers(table)
            variables: dict[str, NDArray[np.float32]] = {}
            unlike, classes, scores = 0, None, None
        elif not traits(self.problem).one_class:
            predictions, good, variables, unlike, classes, scores = self._several(table, parts[0][1])
        else:
            predictions, good, variables, unlike, classes, scores = self._classified(table, parts[0][1])
        for row in rows[~good].tolist():
            reasons[batch.first_row + row] = "the model's answer is not a number, or no probabilities"
        return Scored(
            batch.slice_index,
            (batch.first_row + rows[good]).astype(np.int64),
            predictions[good],
            {name: values[good] for name, values in variables.items()},
            reasons,
            None,
            unlike,
            classes,
            scores=None if scores is None else scores[good],
        )

    def _numbers(self, table: pa.Table) -> tuple[Array, NDArray[np.bool_]]:
        name = "labels" if "labels" in table.column_names else "scores"
        column = table[name].combine_chunks()
        if pa.types.is_fixed_size_list(column.type):
            raise ModelError(
                f"the model gives {column.type.list_size} numbers for each input; a regression monitor watches one"
            )
        try:
            values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
            raise ModelError(f"the model does not answer with numbers ({exc}); set problem: classification") from exc
        return values, np.isfinite(values)

    def _several(
        self, table: pa.Table, header: Document
    ) -> tuple[Array, NDArray[np.bool_], dict[str, NDArray[np.float32]], int, tuple[str, ...] | None, Numbers | None]:
        """The classes that hold, by the model's scores or yes and no for each, or as it lists them."""
        own = header.get("classes")
        classes = self._known() if own is None else self._chosen(tuple(canonical_class(name) for name in own))
        if "scores" not in table.column_names:
            said = logged_sets("the model's label", table["labels"].combine_chunks(), classes, self.spellings)
            return said.sets, said.known, {}, 0, classes, None
        column = table["scores"].combine_chunks()
        matrix = np.asarray(column.flatten()).reshape(table.num_rows, column.type.list_size)
        meaning: Meaning = "logits" if self.meaning == "logits" else "independent"
        outputs = Outputs(
            self.problem, "scores", None, meaning, classes, threshold=self.threshold, keeps_scores=self.keeps_scores
        )
        found = outputs.read([matrix])
        return found.predictions, found.valid, dict(found.variables), 0, found.classes, found.scores

    def _classified(
        self, table: pa.Table, header: Document
    ) -> tuple[Array, NDArray[np.bool_], dict[str, NDArray[np.float32]], int, tuple[str, ...] | None, Numbers | None]:
        count = table.num_rows
        kept: Numbers | None = None
        good = np.ones(count, dtype=bool)
        variables: dict[str, NDArray[np.float32]] = {}
        best: Array | None = None
        own = header.get("classes")
        classes = self._known() if own is None else self._chosen(tuple(canonical_class(name) for name in own))
        if "scores" in table.column_names:
            scores = table["scores"].combine_chunks()
            width = scores.type.list_size
            matrix = np.asarray(scores.flatten()).reshape(count, width)
            meaning: Meaning = "probabilities" if self.meaning == "auto" else self.meaning
            outputs = Outputs(self.problem, "scores", None, meaning, classes, keeps_scores=self.keeps_scores)
            answers = outputs.read([matrix])
            variables, good, best, classes, kept = (
                dict(answers.variables),
                answers.valid,
                answers.predictions,
                answers.classes,
                answers.scores,
            )
        if "labels" not in table.column_names:
            if best is None:
                raise ModelError("the model gives neither a label nor scores")
            return best, good, variables, 0, classes, kept
        labels = table["labels"].combine_chunks()
        if best is None and _are_shares(labels):
            outputs = Outputs(self.problem, "labels", None, "probabilities", classes, keeps_scores=self.keeps_scores)
            answers = outputs.read([labels.to_numpy(zero_copy_only=False)])
            return (
                answers.predictions,
                answers.valid,
                dict(answers.variables),
                0,
                answers.classes,
                answers.scores,
            )
        known = np.asarray(labels.is_valid())
        names = self._named(class_names("the model's label", labels.filter(pa.array(known)), self.spellings))
        predictions = np.full(count, "", names.dtype if len(names) else np.dtype("<U1"))
        predictions[known] = names
        unlike = 0 if best is None else int((best != predictions)[good & known].sum())
        return predictions, good & known, variables, unlike, classes, kept

    def _named(self, names: NDArray[np.str_]) -> NDArray[np.str_]:
        """The model's own names, or numbers of its classes, as the configuration calls them."""
        own, chosen = self._own or (), self._known()
        different = set(np.unique(names).tolist())
        if not own and chosen is not None and not different <= set(chosen) and all(map(str.isdigit, different)):
            own = tuple(map(str, range(len(chosen))))  # numbers of classes
        if not own or chosen is None or set(own) == set(chosen):
            return names
        called = dict(zip(own, chosen, strict=True))
        return np.array([called.get(name, name) for name in names.tolist()], dtype=np.str_)


def _wanted(problem: Problem) -> dict[str, bool]:
    """What a model is asked for beside its answers."""
    holds = traits(problem)
    return {"scores": holds.of_classes, "several": holds.of_classes and not holds.one_class}


def _are_shares(labels: pa.Array) -> bool:
    """Whether answers are fractions between 0 and 1: no names of classes, but probabilities of the second of two."""
    if not pa.types.is_floating(labels.type):
        return False
    values = labels.to_numpy(zero_copy_only=False)
    known = values[np.isfinite(values)]
    return bool(len(known) and ((known >= 0) & (known <= 1)).all() and (known != np.floor(known)).any())


def _stream(rows: pa.RecordBatch) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return memoryview(sink.getvalue())

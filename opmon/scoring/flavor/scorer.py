"""Scores by a model's own flavor, in a process of its own: slower than ONNX Runtime, with the answers as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import ModelError, SourceError
from opmon.problems import traits
from opmon.scoring.flavor.answers import AnswerReader
from opmon.scoring.flavor.feeding import Piece, pieces
from opmon.scoring.flavor.process import ModelFailed, Worker, WorkerFailed
from opmon.scoring.inputs.readers import ReaderPlan
from opmon.scoring.outputs.meaning import Scores
from opmon.scoring.outputs.sets import HALF
from opmon.scoring.scored import Scored
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Array, Batch, Document, Json, Problem, Signature
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
class _Learned:
    """What a model's answers have shown so far of what all of them mean."""

    shares: bool = False


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
    _learned: _Learned = field(default_factory=_Learned)
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
            "classes": list(self._reader().known() or ()) or None,
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

    def _reader(self) -> AnswerReader:
        if self._own is None:
            own = self.worker.told.get("classes")
            self._own = () if own is None else tuple(canonical_class(name) for name in own)
        return AnswerReader(
            self.problem,
            self.classes,
            self.spellings,
            self.meaning,
            self.threshold,
            self.keeps_scores,
            self._own,
            self._learned.shares,
        )

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
        self._learned.shares = self._reader().gives_shares(table)
        predictions, good, variables, unlike, classes, scores = self._reader().read(table, parts[0][1])
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


def _wanted(problem: Problem) -> dict[str, bool]:
    """What a model is asked for beside its answers."""
    holds = traits(problem)
    return {"scores": holds.of_classes, "several": holds.of_classes and not holds.one_class}


def _stream(rows: pa.RecordBatch) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return memoryview(sink.getvalue())

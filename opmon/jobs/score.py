"""Scoring: a job in, parts on disk and their summaries out. Runs wherever the job is sent."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.jobs import parts
from opmon.jobs.chances import with_chances
from opmon.jobs.counting import bounded
from opmon.jobs.ids import hashes_of, ids_of
from opmon.jobs.job import ScoreJob
from opmon.jobs.model import opened
from opmon.jobs.moments import Span
from opmon.jobs.neurons import Neurons, as_bytes
from opmon.jobs.parts import Gap, Part
from opmon.jobs.reading import Beside, Reading
from opmon.jobs.served import Skew, served
from opmon.jobs.slices import texts_of
from opmon.jobs.variables import with_logged
from opmon.problems import traits
from opmon.scoring.scored import Scored
from opmon.tables import joined
from opmon.types import Array

log = logging.getLogger(__name__)

_BYTES = 64 << 20
"""About the most bytes of activations that a part holds."""

_hears: ContextVar[Callable[[int], None] | None] = ContextVar("opmon_scoring_hears", default=None)


@contextmanager
def heard(by: Callable[[int], None]) -> Iterator[None]:
    """Call ``by`` with the number of inputs of each batch that is scored in this process meanwhile."""
    token = _hears.set(by)
    try:
        yield
    finally:
        _hears.reset(token)


def score(job: ScoreJob) -> tuple[Part, ...]:
    """The parts of a job. Those that are there from before are kept, and it goes on behind them."""
    done = parts.finished(job.folder)
    _tell(sum(part.stop - part.start for part in done))
    if done and done[-1].last:
        return tuple(done)
    reading = Reading(job, skip=done[-1].stop if done else 0)
    making = _Making(job, len(done), reading.skip)
    neurons = None if job.neurons is None else Neurons(job.neurons)
    with ThreadPoolExecutor(1, thread_name_prefix="opmon-part") as pool:  # a part is written while the next is scored
        writing: list[Future[Part]] = []
        scorer = opened(job.way) if job.aim is None else opened(job.way).keeping_scores()
        for scored in scorer.score(reading):
            beside = reading.beside.popleft()
            if job.aim is not None:
                scored = with_chances(scored, job.aim)
            if job.variables:
                scored = with_logged(scored, job.variables, beside.numbers, beside.first)
            making.add(scored if neurons is None else neurons.take(scored), beside)
            _tell(len(beside.row))
            if making.is_full:
                _wait(writing)
                writing.append(pool.submit(making.part, last=False))
                making = _Making(job, making.number + 1, making.stop)
        _wait(writing)
    return (*done, *(part.result() for part in writing), making.part(last=True, unreadable=reading.unreadable))


def _wait(writing: Sequence[Future[Part]]) -> None:
    """Wait for the part that is being written; an error of it ends the job."""
    if writing:
        writing[-1].result()


class _Making:
    """A part in the making."""

    def __init__(self, job: ScoreJob, number: int, start: int) -> None:
        self.job, self.number, self.start, self.stop = job, number, start, start
        self.scored: list[Scored] = []
        self.beside: list[Beside] = []
        self.losses, self.unreadable = Counter[str](), Counter[str]()
        self.gaps: list[Gap] = []
        self.span = Span()
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the next batch belongs to another part."""
        return self.stop - self.start >= self.job.part_rows or self._bytes >= _BYTES

    def add(self, scored: Scored, beside: Beside) -> None:
        self.stop = beside.stop
        self.losses.update(scored.rejected.values())
        self.unreadable.update(beside.unreadable)
        _add_gap(self.gaps, len(beside.row), scored.missing)
        self.span |= beside.span
        self.scored.append(scored)
        self._bytes += 0 if scored.activations is None else scored.activations.nbytes
        self.beside.append(beside)

    def part(self, *, last: bool, unreadable: Mapping[str, int] | None = None) -> Part:
        """Write the part, and return it."""
        self.unreadable.update(unreadable or {})
        table, skew, classes = self._table()
        counted = not traits(self.job.problem).of_numbers
        summary = Part(
            parts.path_of(self.job.folder, self.number),
            self.start,
            self.stop,
            table.num_rows,
            last,
            dict(bounded(self.losses)),
            dict(bounded(self.unreadable)),
            tuple(self.gaps),
            skew if counted else None,
            self.span,
            classes,
        )
        return summary.write(table, [beside.sample for beside in self.beside if beside.sample is not None])

    def _table(self) -> tuple[pa.Table, Skew | None, tuple[str, ...] | None]:
        pairs = [pair for pair in zip(self.scored, self.beside, strict=True) if len(pair[0].rows)]
        if not pairs:
            return pa.table({}), None, None
        pieces = [scored for scored, _ in pairs]
        taken = [pa.array(scored.rows - beside.first) for scored, beside in pairs]
        given = [beside.ids.take(at) for at, (_, beside) in zip(taken, pairs, strict=True)]
        ids = [ids_of(each, self.job.columns.id) for each in given]
        columns: dict[str, pa.Array | Array] = {
            "id": pa.chunked_array(ids).combine_chunks(),
            "slice": np.concatenate([beside.slice[at] for at, (_, beside) in zip(taken, pairs, strict=True)]),
            "row": np.concatenate([beside.row[at] for at, (_, beside) in zip(taken, pairs, strict=True)]),
        }
        if self.job.columns.id is not None:
            columns[parts.HASH] = hashes_of(columns["id"])
        own = np.concatenate([scored.predictions for scored in pieces])
        classes = next((scored.classes for scored in pieces if scored.classes is not None), None)
        production = self._served(taken, pairs, own, classes)
        judged, skew = (None, None) if production is None else production
        columns["prediction"] = own if judged is None else judged["prediction"]
        if judged is not None and traits(self.job.problem).of_numbers:
            columns |= {parts.OWN: own, parts.LOGGED: judged["logged"]}
        columns |= _together(parts.VARIABLE, [(len(scored.rows), scored.variables) for scored in pieces])
        columns |= _together(parts.CHANCE, [(len(scored.rows), scored.chances) for scored in pieces])
        for cut in self.job.cuts:
            texts = [texts_of(beside.numbers, cut).take(at) for at, (_, beside) in zip(taken, pairs, strict=True)]
            columns[parts.SLICE + cut.name] = pa.chunked_array(texts).unify_dictionaries().combine_chunks()
        activations = [scored.activations for scored in pieces if scored.activations is not None]
        if self.job.neurons is not None and activations:
            columns[parts.ACTIVATIONS] = as_bytes(activations)
        table = pa.table(columns)
        return table if judged is None else table.filter(pc.invert(judged["stray"])), skew, classes

    def _served(
        self, taken: list[pa.Array], pairs: list[tuple[Scored, Beside]], own: Array, classes: tuple[str, ...] | None
    ) -> tuple[pa.Table, Skew] | None:
        """The predictions of production for the same inputs, and how they differ."""
        name = self.job.columns.prediction
        if name is None:
            return None
        said = [
            beside.prediction.take(at)
            for at, (_, beside) in zip(taken, pairs, strict=True)
            if beside.prediction is not None
        ]
        spelt = self.job.spellings, self.job.columns.threshold
        production = served(name, _joined(said), own, classes, self.job.problem, *spelt)
        if production is not None:
            self.losses.update(production[1].losses)
        return production


def _together(prefix: str, found: Sequence[tuple[int, Mapping[str, NDArray[np.float32]]]]) -> dict[str, Array]:
    """The columns that any of some pieces has, for all of them; each comes with its number of rows."""
    return {
        prefix + name: np.concatenate(
            [values[name] if name in values else parts.lacking(prefix + name, rows) for rows, values in found]
        )
        for name in dict.fromkeys(name for _, values in found for name in values)
    }


def _joined(arrays: list[pa.Array]) -> pa.Array:
    """The arrays as one; where batches have other types, such as whole numbers and fractions, in one that fits all."""
    if len({array.type for array in arrays}) == 1:
        return pa.chunked_array(arrays).combine_chunks()
    return joined([pa.table({"": array}) for array in arrays])[""].combine_chunks()


def _tell(rows: int) -> None:
    by = _hears.get()
    if by is not None:
        by(rows)


def _add_gap(gaps: list[Gap], rows: int, missing: Mapping[str, int]) -> None:
    """Batches one after the other count as one where the same columns hold nothing in all of their rows."""
    if gaps:
        before, lacking = gaps[-1]
        if lacking.keys() == missing.keys() and all(
            (lacking[name] == before) == (missing[name] == rows) for name in missing
        ):
            gaps[-1] = (before + rows, {name: lacking[name] + missing[name] for name in missing})
            return
    gaps.append((rows, dict(missing)))

"""opened → scored: read the round's inputs, score them with the model, keep the frame.

Inputs stream through in Arrow batches. What stays in memory is one pointer, id and a few float32 per input, and one
byte per neuron where the sampler looks at a hidden layer.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.scoring.scored import Scored
from opmon.scoring.scorer import Scorer
from opmon.stages.activations import Activations
from opmon.stages.drift import DriftSample, advise_drift
from opmon.stages.frames import NAME, FrameFile
from opmon.stages.identities import first_met, ids_of
from opmon.stages.moments import span_of
from opmon.stages.originals import Agreement, require_agreement
from opmon.stages.served import Served, served_of
from opmon.stages.toolbox import Toolbox, levels_of
from opmon.stages.unscorable import unscorable
from opmon.stages.versions import UNNAMED, rows_of
from opmon.store import rounds, seen
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.types import Batch, Slice
from opmon.wording import told

log = logging.getLogger(__name__)

ROWS, TRACED_ROWS = 1 << 20, 2048
"""So many inputs go to the model at a time, and so many whose activations are kept until they are written."""


def score_round(work: Toolbox, round_: Round) -> None:
    with work.store.read() as connection:
        slices = rounds.slices_of(connection, round_.id)
    scorer = work.scorer(round_)
    compared = _compared(work, round_, scorer, slices)
    reading = Reading(work, round_, slices)
    scored: list[Scored] = []
    done = 0
    with Activations(work.round_folder(round_), round_.received) as neurons:
        for part in scorer.score(reading):
            scored.append(neurons.take(part))
            done += len(part.rows) + len(part.rejected)
            work.progress(f"scoring round {round_.number}", done, round_.received)
        found = _assemble(work, round_, reading, scored, neurons)
    path = work.round_folder(round_) / NAME
    found.frame.write(path)
    timeline, own = work.runs(round_)
    work.registry.log_artifact(own, path)
    if compared is not None:
        work.registry.tag_run(own, {"opmon.conversion": compared})
    drift = advise_drift(work, round_, own, reading.sample, found.frame)
    with work.write() as connection:
        seen.remember(connection, round_, found.hashes)
        rounds.update(
            connection,
            round_.id,
            state=RoundState.SCORED,
            inputs=len(found.frame),
            unscorable=found.unscorable,
            duplicates=found.duplicates,
            skew=found.skew,
            starts_at=found.starts_at,
            ends_at=found.ends_at,
            classes=None if found.classes is None else list(found.classes),
            spellings=dict(work.settings.spellings.names) or None,
            drift=drift,
            run_id=own,
            timeline_run_id=timeline,
            problem=None,
        )


def _compared(work: Toolbox, round_: Round, scorer: Scorer, slices: Sequence[Slice]) -> Agreement | None:
    """A converted model is held against its original on the round's first inputs."""
    if not work.settings.convert_sklearn:
        return None
    first = next(iter(work.source.read(slices)), None)
    rows = None if first is None else first.rows
    return require_agreement(work.settings, work.registry, work.model(round_), work.folder, scorer, rows)


class Reading:
    """The batches of a round on their way to the model, and what is kept of them beside its answers.

    The model sees each batch under a running number of its first row, so that its answers point straight into the
    columns kept here, whatever rows were left out because another version answered them.
    """

    def __init__(self, work: Toolbox, round_: Round, slices: Sequence[Slice]) -> None:
        self.work, self.round, self.slices = work, round_, slices
        self.sample = DriftSample.of(work.settings, round_, work.settings.seed)
        self.most = ROWS if levels_of(round_.plan) is None else TRACED_ROWS
        self.count = 0
        self.kept: list[dict[str, Any]] = []
        self.unreadable: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.work.source.read(self.slices):
            self.unreadable.update(batch.unreadable)
            rows, numbers = self._ours(batch)
            if not len(numbers):
                continue
            self._keep(batch.slice_index, numbers, rows)
            self.sample.add(rows, self.count)
            for start in range(0, len(numbers), self.most):
                yield Batch(0, self.count + start, rows.slice(start, self.most))
            self.count += len(numbers)

    def _ours(self, batch: Batch) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        numbers = np.arange(batch.first_row, batch.first_row + batch.rows.num_rows, dtype=np.int64)
        plan, version = self.round.plan, self.round.only_version
        if version is None:
            return batch.rows, numbers
        name = plan.version_column or self.work.settings.columns.model_version or ""
        meant = plan.versions or {UNNAMED: plan.current_version or version}  # before versions were looked up
        mask = rows_of(self.column(batch.rows, name), name, version, meant)
        return batch.rows.filter(pa.array(mask)), numbers[mask]

    def column(self, rows: pa.RecordBatch, name: str) -> pa.Array:
        index = rows.schema.get_field_index(name)
        if index < 0:
            raise SourceError(
                f"the inputs have no column {name!r}; they have: {', '.join(rows.schema.names)}. "
                f"Correct 'columns' of monitor {self.work.name!r}."
            )
        return rows.column(index)

    def _keep(self, slice_index: int, numbers: NDArray[np.int64], rows: pa.RecordBatch) -> None:
        columns, kept = self.work.settings.columns, {"row": numbers}
        kept["slice"] = np.full(len(numbers), slice_index, dtype=np.int32)
        for key, name in (("id", columns.id), ("timestamp", columns.timestamp), ("prediction", columns.prediction)):
            if name is not None:
                kept[key] = self.column(rows, name)
        self.kept.append(kept)

    def lost(self) -> Counter[str]:
        """Why inputs of this round could not be read, and how many: no more than it still misses of those it received.

        Where the log names versions, the rounds of other versions miss others.
        """
        left, lost = max(0, self.round.received - self.count), Counter[str]()
        for reason, times in self.unreadable.items():
            lost[reason] = min(times, left)
            left -= lost[reason]
        return +lost

    def joined(self, key: str) -> pa.Array | None:
        parts = [kept[key] for kept in self.kept if key in kept]
        return pa.chunked_array(parts).combine_chunks() if parts else None

    def numbers(self, key: str, dtype: Any) -> NDArray[Any]:
        return np.concatenate([kept[key] for kept in self.kept]) if self.kept else np.empty(0, dtype)


@dataclass(frozen=True)
class _Found:
    frame: FrameFile
    hashes: NDArray[np.uint64] | None
    unscorable: int
    duplicates: int
    skew: float | None
    starts_at: datetime | None
    ends_at: datetime | None
    classes: tuple[str, ...] | None


def _assemble(work: Toolbox, round_: Round, reading: Reading, scored: list[Scored], neurons: Activations) -> _Found:
    good = [part for part in scored if len(part.rows)]
    where = np.concatenate([part.rows for part in good]) if good else np.empty(0, np.int64)
    predictions = np.concatenate([part.predictions for part in good]) if good else np.empty(0, np.str_)
    variables = {name: np.concatenate([part.variables[name] for part in good]) for name in _names(good)}
    classes = good[0].classes if good else None
    production = served_of(work.settings, reading.joined("prediction"), where, predictions, classes)
    left_out = _left_out(work, round_, scored, production, reading.lost())
    keep = np.ones(len(where), dtype=bool) if production is None else ~production.strays
    ids, hashes, duplicates = reading.joined("id"), None, 0
    if ids is not None:
        ids = ids_of(ids.take(pa.array(where)), work.settings.columns.id)
        hashes, fresh = first_met(work, round_, ids.filter(pa.array(keep)))
        duplicates = int((~fresh).sum())
        keep[keep] = fresh
        ids, hashes = ids.filter(pa.array(keep)), np.sort(hashes[fresh])
    judged = predictions if production is None else production.said
    slice_index = reading.numbers("slice", np.int32)[where[keep]]
    row = reading.numbers("row", np.int64)[where[keep]]
    ids = _pointers(reading.slices, slice_index, row) if ids is None else ids
    starts_at, ends_at = _span(work, reading)
    levels = levels_of(round_.plan) if len(where) else None
    return _Found(
        frame=FrameFile(
            slice_index,
            row,
            ids,
            judged[keep],
            {name: values[keep] for name, values in variables.items()},
            None if levels is None else neurons.coded(keep, levels),
        ),
        hashes=hashes,
        unscorable=left_out,
        duplicates=duplicates,
        skew=None if production is None else production.skew,
        starts_at=starts_at,
        ends_at=ends_at,
        classes=classes,
    )


def _names(good: Sequence[Scored]) -> Sequence[str]:
    return list(good[0].variables) if good else []


def _left_out(
    work: Toolbox, round_: Round, scored: Sequence[Scored], production: Served | None, lost: Counter[str]
) -> int:
    """How many inputs cannot be judged; an error where the round must stop for them."""
    try:
        reasons = unscorable(work.settings, round_.received, scored, production, lost)
    except SourceError as exc:
        raise SourceError(
            f"{exc}. The round waits and nothing is lost: run again when that is mended; opmon rounds abandon gives "
            f"it up."
        ) from exc
    if reasons:
        log.warning(
            "round %d of %s: %d inputs of %d cannot be scored: %s",
            round_.number,
            round_.monitor,
            reasons.total(),
            round_.received,
            told(reasons),
        )
    return reasons.total()


def _pointers(slices: Sequence[Slice], slice_index: NDArray[np.int32], row: NDArray[np.int64]) -> pa.Array:
    """An id for each input of a log without ids: where it stands."""
    heads = pa.array([f"{piece.part}#{piece.start}+" for piece in slices])
    return pc.binary_join_element_wise(heads.take(pa.array(slice_index)), pc.cast(pa.array(row), pa.string()), "")


def _span(work: Toolbox, reading: Reading) -> tuple[datetime | None, datetime | None]:
    """When the first and the last of the inputs were answered, or arrived where no time was logged."""
    arrived = [piece.arrived_at for piece in reading.slices]
    moments = reading.joined("timestamp")
    span = None if moments is None else span_of(moments, work.settings.columns.timestamp)
    if span is not None:
        return span
    return (min(arrived), max(arrived)) if arrived else (None, None)

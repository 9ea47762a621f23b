"""opened → scored: read the round's inputs, score them with the model, keep the frame.

Inputs stream through in Arrow batches. What stays in memory is one pointer, id and a few float32 per input.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.scoring.scorer import Scored
from opmon.steps.drifting import DriftSample, advise_drift
from opmon.steps.frames import NAME, FrameFile
from opmon.steps.workplace import Workplace
from opmon.store import rounds
from opmon.store.rounds import Round
from opmon.store.schema import rounds as rounds_table
from opmon.store.schema import seen
from opmon.types import Batch, Slice
from opmon.values import canonical_classes

log = logging.getLogger(__name__)

REMEMBERED_ROUNDS = 10
"""In how many earlier rounds an input id is looked for, to find inputs that production logged twice."""


def score_round(work: Workplace, round_: Round) -> None:
    with work.store.read() as connection:
        slices = rounds.slices_of(connection, round_.id)
    scorer = work.scorer(round_)
    reading = Reading(work, round_, slices)
    scored: list[Scored] = []
    done = 0
    for part in scorer.score(reading):
        scored.append(part)
        done += len(part.rows) + len(part.rejected)
        work.progress(f"scoring round {round_.number}", done, round_.received)
    found = _assemble(work, round_, reading, scored)
    path = work.round_folder(round_) / NAME
    found.frame.write(path)
    timeline, own = work.runs(round_)
    work.registry.log_artifact(own, path)
    drift = advise_drift(work, round_, own, reading.sample, found.frame)
    with work.write() as connection:
        _remember(connection, round_.id, found.hashes)
        rounds.update(
            connection,
            round_.id,
            state="scored",
            inputs=len(found.frame),
            unscorable=found.unscorable,
            duplicates=found.duplicates,
            skew=found.skew,
            starts_at=found.starts_at,
            ends_at=found.ends_at,
            classes=list(scorer.classes) if scorer.classes is not None else None,
            drift=drift,
            run_id=own,
            timeline_run_id=timeline,
            problem=None,
        )


class Reading:
    """The batches of a round on their way to the model, and what is kept of them beside its answers.

    The model sees each batch under a running number of its first row, so that its answers point straight into the
    columns kept here, whatever rows were left out because another version answered them.
    """

    def __init__(self, work: Workplace, round_: Round, slices: Sequence[Slice]) -> None:
        self.work, self.round, self.slices = work, round_, slices
        self.sample = DriftSample.of(work.settings, round_, work.settings.seed)
        self.count = 0
        self.kept: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.work.source.read(self.slices):
            rows, numbers = self._ours(batch)
            if not len(numbers):
                continue
            self._keep(batch.slice_index, numbers, rows)
            self.sample.add(rows, self.count)
            yield Batch(0, self.count, rows)
            self.count += len(numbers)

    def _ours(self, batch: Batch) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        numbers = np.arange(batch.first_row, batch.first_row + batch.rows.num_rows, dtype=np.int64)
        column = self.work.settings.columns.model_version
        if column is None or self.round.only_version is None:
            return batch.rows, numbers
        named = self.column(batch.rows, column).to_pandas().fillna(self.round.plan["current_version"])
        mask = canonical_classes(named.to_numpy()) == self.round.only_version
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
    reasons: dict[str, int] = field(default_factory=dict)


def _assemble(work: Workplace, round_: Round, reading: Reading, scored: list[Scored]) -> _Found:
    where = np.concatenate([part.rows for part in scored]) if scored else np.empty(0, np.int64)
    predictions = np.concatenate([part.predictions for part in scored]) if scored else np.empty(0, np.str_)
    names = scored[0].variables if scored else {}
    variables = {name: np.concatenate([part.variables[name] for part in scored]) for name in names}
    ids, hashes, fresh = _identities(work, round_, reading)
    keep = fresh[where]
    where, predictions = where[keep], predictions[keep]
    variables = {name: values[keep] for name, values in variables.items()}
    judged, skew = _judged(work, reading.joined("prediction"), where, predictions)
    slice_index, row = reading.numbers("slice", np.int32)[where], reading.numbers("row", np.int64)[where]
    ids = _pointers(reading.slices, slice_index, row) if ids is None else ids.take(pa.array(where))
    starts_at, ends_at = _span(work, reading)
    rejected = sum(len(part.rejected) for part in scored)
    _tell_rejected(round_, scored, rejected)
    return _Found(
        frame=FrameFile(slice_index, row, ids, judged, variables),
        hashes=None if hashes is None else np.sort(hashes[fresh]),
        unscorable=rejected,
        duplicates=int((~fresh).sum()),
        skew=skew,
        starts_at=starts_at,
        ends_at=ends_at,
    )


def _tell_rejected(round_: Round, scored: list[Scored], count: int) -> None:
    if count:
        reason = next(reason for part in scored for reason in part.rejected.values())
        log.warning(
            "round %d of %s: %d inputs of %d cannot be scored, for example: %s",
            round_.number,
            round_.monitor,
            count,
            round_.received,
            reason,
        )


def _identities(
    work: Workplace, round_: Round, reading: Reading
) -> tuple[pa.Array | None, NDArray[np.uint64] | None, NDArray[np.bool_]]:
    """The inputs' ids, their hashes, and which inputs are met for the first time."""
    ids = reading.joined("id")
    if ids is None:
        return None, None, np.ones(reading.count, dtype=bool)
    import pandas as pd

    ids = pc.cast(ids, pa.string())
    if ids.null_count:
        raise SourceError(
            f"{ids.null_count} of {len(ids)} inputs of round {round_.number} have no {work.settings.columns.id!r}; "
            "an id column must be filled in every row, or left out of 'columns' so that the place in the log is the id"
        )
    hashes = pd.util.hash_array(ids.to_pandas().to_numpy(dtype=object), categorize=False)
    fresh = ~pd.Series(hashes).duplicated().to_numpy()
    with work.store.read() as connection:
        earlier = sa.select(seen.c.hashes).where(seen.c.round_id.in_(_earlier(round_)))
        for (packed,) in connection.execute(earlier):
            known = np.frombuffer(packed, dtype=np.uint64)
            place = np.minimum(np.searchsorted(known, hashes), max(len(known) - 1, 0))
            if len(known):
                fresh &= known[place] != hashes
    return ids, hashes, fresh


def _earlier(round_: Round) -> Any:
    table = rounds_table.c
    return (
        sa.select(table.id)
        .where(table.monitor == round_.monitor, table.number < round_.number)
        .where(table.model_name == round_.model_name, table.model_version == round_.model_version)
        .order_by(table.number.desc())
        .limit(REMEMBERED_ROUNDS)
    )


def _remember(connection: sa.Connection, round_id: int, hashes: NDArray[np.uint64] | None) -> None:
    if hashes is not None and len(hashes):
        connection.execute(seen.delete().where(seen.c.round_id == round_id))
        connection.execute(seen.insert().values(round_id=round_id, hashes=hashes.astype(np.uint64).tobytes()))


def _judged(
    work: Workplace, logged: pa.Array | None, where: NDArray[np.int64], own: NDArray[Any]
) -> tuple[NDArray[Any], float | None]:
    """The predictions that users saw, and the share of them that the registered model answers otherwise."""
    if logged is None or not len(where):
        return own, None
    logged = logged.take(pa.array(where))
    known = np.asarray(logged.is_valid())
    if not known.any():
        return own, None
    if work.settings.problem == "regression":
        given = pc.cast(logged.filter(pa.array(known)), pa.float64()).to_numpy(zero_copy_only=False)
        judged = own.astype(np.float64)
        differs = ~np.isclose(given, judged[known], rtol=1e-5, atol=1e-8)
    else:
        given = canonical_classes(logged.filter(pa.array(known)).to_pandas().to_numpy(dtype=object))
        judged = own.astype(object)
        differs = given != judged[known].astype(np.str_)
    judged[known] = given
    return judged, float(differs.mean())


def _pointers(slices: Sequence[Slice], slice_index: NDArray[np.int32], row: NDArray[np.int64]) -> pa.Array:
    """An id for each input of a log without ids: where it stands."""
    heads = pa.array([f"{piece.part}#{piece.start}+" for piece in slices])
    return pc.binary_join_element_wise(heads.take(pa.array(slice_index)), pc.cast(pa.array(row), pa.string()), "")


def _span(work: Workplace, reading: Reading) -> tuple[datetime | None, datetime | None]:
    """When the first and the last of the inputs were answered, or arrived where no time was logged."""
    arrived = [piece.arrived_at for piece in reading.slices]
    moments = reading.joined("timestamp")
    if moments is None or moments.null_count == len(moments):
        return (min(arrived), max(arrived)) if arrived else (None, None)
    bounds = pc.min_max(_as_moments(work, moments))
    return bounds["min"].as_py(), bounds["max"].as_py()


def _as_moments(work: Workplace, values: pa.Array) -> pa.Array:
    name = work.settings.columns.timestamp
    utc = pa.timestamp("us", tz="UTC")
    try:
        if pa.types.is_timestamp(values.type):
            return (
                pc.cast(values, utc)
                if values.type.tz
                else pc.assume_timezone(pc.cast(values, pa.timestamp("us")), "UTC")
            )
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            return pc.cast(pc.cast(pc.multiply(pc.cast(values, pa.float64()), 1e6), pa.int64(), safe=False), utc)
        import pandas as pd

        return pa.array(pd.to_datetime(values.to_pandas(), utc=True, format="ISO8601"), type=utc)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as exc:
        raise SourceError(
            f"column {name!r} does not hold times ({exc}); allowed are timestamps, ISO 8601 text and seconds since 1970"
        ) from exc

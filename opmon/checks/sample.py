"""Inputs to try a monitor on: those that the next run would take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from opmon.abc import Source
from opmon.checks.finding import Finding, short, trouble
from opmon.config import MonitorSettings, Settings
from opmon.errors import OpmonError, SourceError, UnavailableError
from opmon.jobs.thinning import probabilities
from opmon.queries.rounds import gathers
from opmon.store import migrate, positions, rounds
from opmon.store.engine import connect
from opmon.store.rounds import Round
from opmon.store.slices import slices_of
from opmon.store.states import RoundState
from opmon.types import Batch, ModelVersion, Slice

ROWS = 1000
"""So many inputs are looked at, and so many of them scored."""
SCORED = 256
_LOOKED_AT = 200_000
"""Of a log of which not all rows are inputs so many are looked at for some."""


@dataclass(frozen=True)
class Sample:
    """Rows of the log. ``round`` is the one that waits for them, where one does."""

    rows: pa.Table
    round: Round | None = None


def look_at_source(
    settings: Settings, monitor: MonitorSettings, model: ModelVersion | None
) -> Iterator[tuple[Finding, Sample | None]]:
    """Findings on waiting rounds and on the source and its columns, and some of its inputs."""
    standing = _standing(settings, monitor)
    stuck = [f"round {round_.number}: {round_.problem}" for round_ in standing.unfinished if round_.problem]
    if stuck:
        yield Finding(f"{monitor.name}: rounds", "warning", f"these are tried again: {'; '.join(stuck[:3])}"), None
    round_ = next((one for one in standing.waiting if model is not None and one.model == _names(model)), None)
    yield _look(settings, monitor, round_, standing.positions)


def _look(
    settings: Settings, monitor: MonitorSettings, round_: Round | None, positions: Mapping[str, str]
) -> tuple[Finding, Sample | None]:
    about = f"{monitor.name}: source"
    try:
        slices, remark = _slices(settings, monitor, round_, positions)
        if not slices:
            return Finding(
                about, "warning", "nothing to read yet: nothing is there, or nothing that is complete and settled"
            ), None
        rows, seen = _first_inputs(monitor, slices)
        _require_probabilities(monitor, rows)
    except OpmonError as exc:
        return trouble(about, exc), None
    names = rows.column_names
    proxy = () if monitor.proxy_column is None else (("estimate.proxy", monitor.proxy_column.column),)
    missing = [f"{key}: {name}" for key, name in (*monitor.columns.named, *proxy) if name not in names]
    if missing:
        message = f"columns that are not there ({', '.join(missing)}); there are: {', '.join(names)}"
        return Finding(about, "problem", message, needs_change=True), None
    if not rows.num_rows:
        return Finding(about, "warning", f"none of the first {seen:,} rows fits inputs.where: {monitor.where}"), None
    fitting = "" if rows.num_rows == seen else f"; {rows.num_rows:,} of the first {seen:,} rows fit inputs.where"
    message = f"{slices[0].part} can be read: {len(names)} columns ({short(names)}){remark}{fitting}"
    return Finding(about, "ok", message), Sample(rows, round_)


def _require_probabilities(monitor: MonitorSettings, rows: pa.Table) -> None:
    """An error where the column that says how likely each row was logged does not say it: no round would be opened."""
    column = monitor.inclusion
    if column is not None:
        for batch in rows.to_batches():
            probabilities(batch, column, np.ones(batch.num_rows, bool))


def _first_inputs(monitor: MonitorSettings, slices: Sequence[Slice]) -> tuple[pa.Table, int]:
    """The first rows that are inputs, and how many rows were looked at for them."""
    where, source = monitor.where, monitor.reads
    if where is None:
        rows = first_rows(source, slices)
        return rows, rows.num_rows
    seen = 0

    def inputs() -> Iterator[Batch]:
        nonlocal seen
        kept = [number for number, piece in enumerate(slices) if not where.excludes(source.constants(piece))]
        seen = sum(piece.rows for piece in slices) - sum(slices[number].rows for number in kept)
        for batch in source.read_some(slices, kept or [0]):
            rows = batch.rows.filter(pa.array(where.mask(batch.rows)))
            seen += batch.rows.num_rows
            yield replace(batch, rows=rows)

    return _table(inputs(), ROWS), seen


def spread(rows: pa.Table, count: int = SCORED) -> list[Batch]:
    """So many of the rows, evenly spaced from first to last."""
    chosen = np.unique(np.linspace(0, max(rows.num_rows - 1, 0), min(count, rows.num_rows)).round().astype(np.int64))
    found, first, taken = [], 0, 0
    for batch in rows.to_batches():
        own = chosen[(chosen >= first) & (chosen < first + batch.num_rows)] - first
        if len(own):
            found.append(Batch(0, taken, batch.take(pa.array(own))))
        first, taken = first + batch.num_rows, taken + len(own)
    return found


@dataclass(frozen=True)
class _Standing:
    """The position of a monitor in its log; none before the first run."""

    positions: Mapping[str, str] = field(default_factory=dict)
    unfinished: Sequence[Round] = ()
    waiting: Sequence[Round] = ()
    """The rounds that the next run would score."""


def _standing(settings: Settings, monitor: MonitorSettings) -> _Standing:
    try:
        store = connect(settings.database.get_secret_value())
        if not migrate.is_current(store):
            return _Standing()
        with store.read() as connection:
            found, now = rounds.unfinished(connection, monitor.name), datetime.now(UTC)
            waiting = [
                one
                for one in found
                if one.state == RoundState.OPENED and not gathers(connection, one, monitor.watch, now)
            ]
            return _Standing(positions.read(connection, monitor.name), found, waiting)
    except UnavailableError:  # said already
        return _Standing()


def _names(model: ModelVersion) -> tuple[str, str]:
    return model.name, model.version


def _slices(
    settings: Settings, monitor: MonitorSettings, round_: Round | None, positions: Mapping[str, str]
) -> tuple[Sequence[Slice], str]:
    """The slices that the next run would read, and a remark if they hold no new inputs."""
    source, limit = monitor.reads, ROWS if monitor.where is None else _LOOKED_AT
    if round_ is not None:
        with connect(settings.database.get_secret_value()).read() as connection:
            return slices_of(connection, round_.id), f"; round {round_.number} waits for them"
    begins = positions or source.begins()
    new = source.pending(begins, limit)
    if new or not begins:
        return new, ""
    before = "what was read before" if positions else "what was there before it begins (since)"
    return source.pending({}, limit), f"; nothing new is there, so {before} is tried"


def first_rows(source: Source, slices: Sequence[Slice], count: int = ROWS) -> pa.Table:
    """The first rows, as far as they have the same columns."""
    return _table(source.read(slices), count)


def _table(batches: Iterable[Batch], count: int) -> pa.Table:
    """The first rows of batches with the same columns."""
    found: list[pa.RecordBatch] = []
    lost: list[str] = []
    for batch in batches:
        lost += batch.unreadable
        if found and batch.rows.schema != found[0].schema:
            break
        found.append(batch.rows)
        if sum(rows.num_rows for rows in found) >= count:
            break
    if lost and not any(rows.num_rows for rows in found):
        raise SourceError(f"none of the first inputs can be read: {'; '.join(lost[:3])}")
    return pa.Table.from_batches(found).slice(0, count) if found else pa.table({})

"""The source ``sql``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

import pyarrow as pa
import sqlalchemy as sa

from opmon.abc import Source
from opmon.durations import duration
from opmon.errors import InputError, SourceError
from opmon.redaction import shown_address
from opmon.sources._damage import Damaged, stopping
from opmon.sources._salvage import Flaw
from opmon.sources._schema import declared_types
from opmon.sources._since import NOW, Since, moment_of, settling, since_text
from opmon.sources._wanted import require_rows
from opmon.sources.sql import behind
from opmon.sources.sql import relation as relations
from opmon.sources.sql.connecting import Session, parsed, session
from opmon.sources.sql.keys import BEGIN, Keys, Position
from opmon.sources.sql.relation import Relation
from opmon.sources.sql.rows import batches, record_batch
from opmon.sources.sql.settled import Look, Unsettled
from opmon.types import Batch, Slice

_log = logging.getLogger(__name__)

_MOST_UNPLACED, _ASKED_AT_ONCE = 10_000, 1000


@dataclass(frozen=True)
class Sql(Source):
    """Rows of a table, a view or a query, in any database that SQLAlchemy knows, as they are added.

    `cursor` says in which order: a time or a whole number that grows, alone or with more columns behind it, such as
    `[created_at, id]`; a table's primary key is put behind it anyway. Rows alike in all of them stay together. An index
    on these columns, in this order, makes it fast. Rows without a value there are not read, and count as lost.

    What was read must stay: rows may be added, not changed or removed (a round that is under way and finds fewer or
    more rows than it was opened with is an error). A row counts once it is `settle` old by the cursor's time, on the
    database's clock on PostgreSQL: it must be committed within that time. Times without a zone are taken to be UTC. A
    whole number alone is enough where its order is that of the commits: in SQLite, and in a PostgreSQL table whose
    INSERTs take it from the column's own sequence (opmon waits for those that were under way when it looked).
    Elsewhere put a time before it, or say `settle: 0s` if rows appear in their order. Rows that appear among the last
    100,000 that were read (or the last round's, if that was larger), although these had settled, are not read, and the
    next round counts them as lost; what appears further back nobody sees: choose `settle` longer than any commit takes.

    Numbers become int64 and float64, arrays lists, and JSON, UUIDs and all that Arrow has no type for text. NUMERIC
    becomes int64 where it has no fraction and at most 18 digits, and otherwise float64, which keeps 15 digits: where
    ids are longer, say `types: {id: string}`. Nothing is written: transactions are read-only. Let the user that reads
    be one who may do no more.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("database",)

    database: str = field(repr=False)
    """The address, such as postgresql+psycopg://reader:${LOG_PASSWORD}@db/log or sqlite:///log.db."""
    cursor: str | tuple[str, ...]
    """A column, or several: the first holds times or whole numbers that grow with every row."""
    table: str | None = None
    """The table or view, `name` or `schema.name`."""
    query: str | None = None
    """In place of a table: a SELECT that gives the rows, the cursor's columns among them."""
    settle: str = "60s"
    """How long rows are left alone, so that late commits are in before others behind them are read."""
    since: Since = None
    """A date, a time, or now: what is older is not read. It holds for a monitor that has not read anything yet."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Column -> string, int64, float64, float32 or bool, where the database's own type is not what is meant."""
    timeout: str = "5m"
    """The longest that a statement may take."""
    broken: Literal["stop", "skip"] = "stop"
    """`skip` leaves out rows whose values do not fit their columns (SQLite takes any), and counts them."""

    def __post_init__(self) -> None:
        names = (self.cursor,) if isinstance(self.cursor, str) else tuple(self.cursor)
        if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
            raise InputError(f"cursor is a column or a list of different ones, such as [created_at, id]; got {names!r}")
        if (self.table is None) == (self.query is None):
            raise InputError("table or query must be given, and not both; such as table: requests")
        if self.broken not in ("stop", "skip"):
            raise InputError(f"broken must be one of stop, skip; got {self.broken!r}")
        object.__setattr__(self, "cursor", names)
        object.__setattr__(self, "since", since_text(self.since))
        settling(self.settle)
        self._kinds()
        try:
            duration(self.timeout)
        except ValueError as exc:
            raise InputError(f"timeout {exc}; got {self.timeout!r}") from None
        parsed(self.database)

    @property
    def asks(self) -> str:
        """The address of the database without its password."""
        return shown_address(self.database)

    @property
    def patience(self) -> float:
        """Some statements, each of which has its own limit."""
        return 4 * duration(self.timeout).total_seconds()

    def begins(self) -> Mapping[str, str]:
        """Where ``since`` says, in the order of the cursor."""
        if self.since is None:
            return {}
        with self._look() as look:
            if look.keys.is_time:
                moment = moment_of(str(self.since), look.now())
                return {self._part: str(Position(look.keys.names[:1], (moment,), inclusive=True))}
            if str(self.since).lower() != NOW:
                raise InputError(
                    f"since {self.since!r} needs a cursor that is a time; {look.keys.first.name!r} holds numbers: say "
                    f"since: now, or leave older rows out with a query"
                )
            newest = look.newest()
            return {self._part: BEGIN if newest is None else str(newest)}

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """The settled rows behind the position, about ``limit`` of them: rows alike in all keys are not parted."""
        with self._look() as look:
            keys, known = look.keys, positions.get(self._part)
            start = keys.parse(known, self._part)
            unplaced = self._unplaced(look)
            try:
                stop = self._stop(look, start, limit)
            except Unsettled:
                return []
            if stop is None:
                return []
            counted = sa.select(sa.func.count(), sa.func.min(keys.first.raw)).select_from(look.relation.origin)
            rows, oldest = look.opened.row(counted.where(keys.between(start, stop)))
            read = self._counted(look, known or BEGIN, start, rows, unplaced)
        moment = keys.moment(oldest)
        arrived = datetime.now(UTC) if moment is None else moment + settling(self.settle)
        return [Slice(self._part, known or BEGIN, behind.told(str(stop), read), rows, arrived)] if rows else []

    def lost(self, slices: Sequence[Slice]) -> Mapping[str, int]:
        """Rows that appeared behind what was read, and rows without a place in the order of the cursor."""
        names = " or ".join(map(repr, self.cursor))
        late = f"came when their time had been read (settle: {self.settle})"
        return behind.lost(slices, late, f"have no value in {names}")

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order; all batches have the types that the table says."""
        yield from self._batches(slices, range(len(slices)), columns)

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        """The rows of some of the slices."""
        yield from self._batches(slices, numbers, None)

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        """Single rows again, ordered by slice, then as asked."""
        for index in rows:
            require_rows(slices, index, rows[index])
        with self._look() as look:
            tables = [look.relation.schema(None).empty_table()]
            for index in sorted(rows):
                wanted, ordered = list(rows[index]), sorted(set(rows[index]))
                found = [
                    self._numbered(look, slices[index], ordered[begin : begin + _ASKED_AT_ONCE])
                    for begin in range(0, len(ordered), _ASKED_AT_ONCE)
                ]
                place = {row: number for number, row in enumerate(ordered)}
                if found:
                    taken = pa.array([place[row] for row in wanted], pa.int64())
                    tables.append(pa.Table.from_batches(found).take(taken))
        return pa.concat_tables(tables)

    @property
    def _part(self) -> str:
        return self.table or "query"

    def _kinds(self) -> dict[str, pa.DataType]:
        return declared_types(self.types)

    @contextmanager
    def _look(self) -> Iterator[Look]:
        what = f"table {self.table}" if self.table else "the query"
        with session(self.database, what, duration(self.timeout)) as one:
            there = self._relation(one)
            yield Look(one, there, Keys.of(there, self.cursor, one.dialect), settling(self.settle))

    def _relation(self, opened: Session) -> Relation:
        if self.table is not None:
            return relations.table(opened, self.table, self._kinds())
        return relations.query(opened, self.query or "", self._kinds())

    def _stop(self, look: Look, start: Position, limit: int | None) -> Position | None:
        """Where a slice from ``start`` on ends; None where there is nothing to read."""
        keys, relation = look.keys, look.relation
        query = sa.select(*keys.raw).select_from(relation.origin)
        query = query.where(look.settled(start), keys.after(start), keys.known()).limit(1)
        row = None
        if limit is not None:
            row = look.opened.row(query.order_by(*keys.raw).offset(max(0, limit - 1)))
        if row is None:
            row = look.opened.row(query.order_by(*keys.order(relation, descending=True)))
        return None if row is None else keys.at(row)

    def _counted(self, look: Look, known: str, start: Position, rows: int, unplaced: int) -> behind.Told:
        """What is read up to the next position, and which rows are lost since the one before."""
        before = behind.read_up_to(known)
        if before is None:  # what has no place is new where the log is read from its beginning
            return behind.Told(behind.place(known), rows, unplaced, without=unplaced if known == BEGIN else 0)
        there = sa.select(sa.func.count()).select_from(look.relation.origin)
        begin = look.keys.parse(before.begin, self._part)
        now = look.opened.row(there.where(look.keys.between(begin, start)))[0]
        late, without = max(0, now - before.rows), max(0, unplaced - before.unplaced)
        if now + rows <= behind.LOOKED_BACK:
            return behind.Told(before.begin, now + rows, unplaced, late, without)
        return behind.Told(behind.place(known), rows, unplaced, late, without)

    def _unplaced(self, look: Look) -> int:
        """How many rows have no place in the order, as far as they are counted; it is told."""
        unknown = look.keys.unknown()
        if unknown is None:
            return 0
        some = sa.select(sa.literal(1).label("one")).select_from(look.relation.origin).where(unknown)
        count: int = look.opened.row(sa.select(sa.func.count()).select_from(some.limit(_MOST_UNPLACED).subquery()))[0]
        if count:
            shown = f"{count:,}" if count < _MOST_UNPLACED else f"{count:,} or more"
            names = " or ".join(map(repr, self.cursor))
            _log.warning("%s has %s rows without a value in %s: they are not read", self._part, shown, names)
        return count

    def _batches(
        self, slices: Sequence[Slice], numbers: Sequence[int], columns: Sequence[str] | None
    ) -> Iterator[Batch]:
        for index in numbers:
            with self._look() as look:
                yield from self._batches_of(look, index, slices[index], columns)

    def _batches_of(self, look: Look, index: int, piece: Slice, columns: Sequence[str] | None) -> Iterator[Batch]:
        relation, at = look.relation, 0
        schema = relation.schema(columns)
        chosen = [relation.columns[name] for name in schema.names]
        asked = [column.expression for column in chosen] or [sa.literal(1)]
        query = self._of(look, piece, sa.select(*asked).select_from(relation.origin))
        lost: dict[str, int] = {}
        for found in batches(look.opened, query.order_by(*look.keys.order(relation)), chosen):
            rows = 1 if isinstance(found, Flaw) else found.num_rows
            if at + rows > piece.rows:
                raise self._changed(piece, "more")
            if not isinstance(found, Flaw):
                yield Batch(index, at, found)
            elif self.broken == "stop":
                raise stopping(Damaged(f"{self._part}, row {at} after {behind.place(piece.start)}: {found.reason}"))
            else:
                lost[found.reason] = lost.get(found.reason, 0) + 1
            at += rows
        if at < piece.rows:
            raise self._changed(piece, str(at))
        if lost:
            yield Batch(index, at, pa.RecordBatch.from_pylist([], schema=schema), lost)

    def _of(self, look: Look, piece: Slice, query: sa.Select[Any]) -> sa.Select[Any]:
        start, stop = (look.keys.parse(text, self._part) for text in (piece.start, piece.stop))
        return query.where(look.keys.between(start, stop))

    def _numbered(self, look: Look, piece: Slice, wanted: Sequence[int]) -> pa.RecordBatch:
        """The rows of a slice with these numbers, in order."""
        relation, columns = look.relation, list(look.relation.columns.values())
        order = look.keys.order(relation)
        number = (sa.func.row_number().over(order_by=order) - 1).label("opmon_row")
        whole = sa.func.count().over().label("opmon_rows")
        labelled = [column.expression.label(f"c{place}") for place, column in enumerate(columns)]
        numbered = sa.select(*labelled, number, whole).select_from(relation.origin)
        inner = self._of(look, piece, numbered).subquery("numbered")
        picked = sa.select(inner).where(inner.c.opmon_row.in_(list(wanted))).order_by(inner.c.opmon_row)
        rows = look.opened.rows(picked)
        if len(rows) != len(wanted) or any(row[-1] != piece.rows for row in rows):
            raise self._changed(piece, str(rows[0][-1]) if rows else "0")
        try:
            return record_batch(rows, columns, look.opened.dialect)
        except ValueError as exc:
            raise Damaged(
                f"{self._part} between {behind.place(piece.start)} and {behind.place(piece.stop)}: {exc}"
            ) from exc

    def _changed(self, piece: Slice, found: str) -> SourceError:
        between = f"between {behind.place(piece.start)} and {behind.place(piece.stop)}"
        return SourceError(
            f"{self._part} gives {found} rows {between}, where {piece.rows} were when the round was opened. Rows may "
            f"be added to it, not changed or removed; were some committed more than settle ({self.settle}) after the "
            f"time that they bear, raise settle. Put back the rows that were there, or give the round up with 'opmon "
            f"rounds abandon'."
        )

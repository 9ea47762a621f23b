"""Up to where rows are settled: none can appear any more before those that are there.

A row has its time, or its number, before it is committed: one that comes later may stand before one that was read.
Times are left alone until they are ``settle`` old. Numbers of a PostgreSQL table are given inside of the INSERT, which
holds a lock on the table until it is committed: whoever held one when the greatest number was read is waited for. On
SQLite there is one writer at a time. Elsewhere nothing protects numbers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from opmon.errors import SourceError
from opmon.sources.sql.connecting import Session
from opmon.sources.sql.keys import Keys, Position, text_shape
from opmon.sources.sql.relation import Relation

_PATIENCE, _PAUSE = 2.0, 0.02
"""For how many seconds, and how often, writers are waited for in one look."""

_HOLDERS = """
SELECT DISTINCT virtualtransaction FROM pg_catalog.pg_locks
WHERE locktype = 'relation' AND granted AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
  'AccessExclusiveLock') AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
  AND (relation = CAST(:name AS regclass)
       OR relation IN (SELECT relid FROM pg_catalog.pg_partition_tree(CAST(:name AS regclass))))
"""
_CACHED = """
SELECT s.seqcache FROM pg_catalog.pg_sequence s
WHERE s.seqrelid = CAST(pg_catalog.pg_get_serial_sequence(:name, :column) AS regclass)
"""


class Unsettled(Exception):
    """Nothing is known to be settled just now."""


@dataclass(frozen=True)
class Look:
    """One look at a relation: what is there, in which order, and how old rows must be."""

    opened: Session
    relation: Relation
    keys: Keys
    settle: timedelta

    def settled(self, start: Position) -> sa.ColumnElement[bool]:
        """The condition of rows after ``start`` that stay where they are; Unsettled where there are none as yet."""
        if self.keys.is_time:
            return self._old_enough(start)
        if not self.settle or self.opened.dialect == "sqlite":
            return sa.true()
        if self.opened.dialect == "postgresql" and self.relation.name is not None:
            return self._without_writers()
        asked = "a query" if self.relation.name is None else f"a table of {self.opened.dialect}"
        raise self._unprotected(f"this is {asked}")

    def now(self) -> datetime:
        """The time, of the database's clock where that can be asked."""
        if self.opened.dialect == "postgresql":
            found: datetime = self.opened.row(sa.select(sa.func.clock_timestamp()))[0]
            return found.astimezone(UTC)
        return datetime.now(UTC)

    def newest(self) -> Position | None:
        """The position after all that is there now; None where there is nothing."""
        query = sa.select(*self.keys.raw).select_from(self.relation.origin).where(self.keys.known())
        row = self.opened.row(query.order_by(*self.keys.order(self.relation, descending=True)).limit(1))
        return None if row is None else self.keys.at(row)

    def _old_enough(self, start: Position) -> sa.ColumnElement[bool]:
        first, like = self.keys.first.raw, None
        horizon = self.now() - self.settle
        if self.keys.is_text:
            like = self._one_way_of_writing(start)
        return first <= sa.literal(self.keys.bound(horizon, like), sa.types.NULLTYPE)

    def _one_way_of_writing(self, start: Position) -> str:
        """A time of the column; an error where they are not all written alike: text is then not in their order."""
        first = self.keys.first.raw
        ends = sa.select(sa.func.min(first), sa.func.max(first)).where(self.keys.known(), self.keys.after(start))
        low, high = self.opened.row(ends)
        if low is None:
            raise Unsettled
        try:
            separator, zone = text_shape(low)
            text_shape(high)
        except ValueError as exc:
            raise SourceError(f"{self.relation.part}: the cursor {self.keys.first.name!r}: {exc}") from exc
        alike = sa.and_(
            first.like(f"____-__-__{separator}__:__%"),
            first.like(f"%{zone}") if zone else sa.and_(first.not_like("%Z"), first.not_like("%+%")),
        )
        other = self.opened.row(
            sa.select(first).where(self.keys.known(), self.keys.after(start), sa.not_(alike)).limit(1)
        )
        if other is not None:
            raise SourceError(
                f"{self.relation.part}: the cursor {self.keys.first.name!r} holds times written in different ways, "
                f"such as {low!r} and {other[0]!r}: as text they are not in their order. Write them all the same way."
            )
        return str(low)

    def _without_writers(self) -> sa.ColumnElement[bool]:
        name = self._quoted()
        self._require_plain_sequence(name)
        newest = self.newest()
        if newest is None:
            raise Unsettled
        holders, end = self._holders(name), time.monotonic() + _PATIENCE
        while holders and time.monotonic() < end:
            time.sleep(_PAUSE)
            holders &= self._holders(name)
        if holders:
            raise Unsettled
        return self.keys.first.raw <= sa.literal(newest.values[0], sa.types.NULLTYPE)

    def _holders(self, name: str) -> set[str]:
        return {str(row[0]) for row in self.opened.rows(sa.text(_HOLDERS).bindparams(name=name))}

    def _require_plain_sequence(self, name: str) -> None:
        row = self.opened.row(sa.text(_CACHED).bindparams(name=name, column=self.keys.first.name))
        if row is None:
            raise self._unprotected("it does not come from a sequence of the column's own")
        if row[0] != 1:
            raise self._unprotected(f"each connection takes {row[0]} numbers at a time from its sequence")
        if self.opened.row(sa.select(sa.func.pg_is_in_recovery()))[0]:
            raise self._unprotected("this is a standby, which does not know who writes on the primary")

    def _unprotected(self, why: str) -> SourceError:
        column = self.keys.first.name
        return SourceError(
            f"{self.relation.part}: rows may appear behind others with greater {column!r}, and nothing tells when all "
            f"are committed: {why}. Use a cursor that begins with a time (cursor: [created_at, {column}]), or say "
            f"settle: 0s if rows appear in the order of their numbers."
        )

    def _quoted(self) -> str:
        schema, name = self.relation.name or (None, "")
        prepared: Any = self.opened.connection.dialect.identifier_preparer
        parts = [prepared.quote_identifier(each) for each in (schema, name) if each is not None]
        return ".".join(parts)

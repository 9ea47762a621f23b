"""The slices of the log that rounds cover."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store import positions
from opmon.store._inserting import insert
from opmon.store.schema import rounds, slices
from opmon.store.states import RoundState
from opmon.types import Slice

_AT_ONCE = 500


def cover(
    connection: Connection,
    round_id: int,
    monitor: str,
    pieces: Sequence[Slice],
    only_version: str | None,
    place: int,
) -> None:
    """Give a round these slices, from ``place`` on, and move the cursor behind them."""
    of_version = only_version or ""
    columns = ("round_id", "monitor", "place", "part", "start", "stop", "rows", "arrived_at", "only_version")
    rows = [
        (round_id, monitor, number, piece.part, piece.start, piece.stop, piece.rows, piece.arrived_at, of_version)
        for number, piece in enumerate(pieces, place)
    ]
    insert(connection, slices, columns, rows)
    positions.move(connection, monitor, {piece.part: piece.stop for piece in pieces})


def slices_of(connection: Connection, round_id: int) -> list[Slice]:
    """The slices of a round, in the order in which it reads them."""
    rows = connection.execute(sa.select(slices).where(slices.c.round_id == round_id).order_by(slices.c.place))
    return [Slice(row.part, row.start, row.stop, row.rows, row.arrived_at) for row in rows]


def arrived(connection: Connection, round_id: int) -> datetime | None:
    """When the first of a round's inputs came."""
    earliest: datetime | None = connection.scalar(
        sa.select(sa.func.min(slices.c.arrived_at)).where(slices.c.round_id == round_id)
    )
    return earliest


def count_of(connection: Connection, round_id: int) -> int:
    """How many slices a round has."""
    return connection.scalar(sa.select(sa.func.count()).where(slices.c.round_id == round_id)) or 0


def needed(connection: Connection, monitor: str) -> set[str]:
    """The parts of the log that a round which is not at its end may read again."""
    over = [state for state in RoundState if state.is_over]
    query = sa.select(slices.c.part).join(rounds, rounds.c.id == slices.c.round_id)
    return set(connection.scalars(query.where(slices.c.monitor == monitor, rounds.c.state.not_in(over))))


def move(connection: Connection, old: int, new: int, parts: Sequence[str]) -> None:
    """Give these parts of round ``old`` to round ``new``; the cursor stays where it is."""
    for start in range(0, len(parts), _AT_ONCE):
        some = slices.c.part.in_(parts[start : start + _AT_ONCE])
        connection.execute(slices.update().where(slices.c.round_id == old, some).values(round_id=new))

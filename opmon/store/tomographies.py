"""Tomographies in SQL: what each came to for ever, and the newest ones whole, so that they can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import Query, Row, rounds, tomographies
from opmon.types import Json

WHOLE = 10
"""So many of the newest of a monitor are kept whole."""
LARGEST = 8 << 20
"""Bytes: a larger one is in MLflow alone."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A tomography without its tests."""

    round_id: int
    round: int
    at: datetime
    """When the last input of its round came."""
    made_at: datetime
    model_version: str
    run_id: str | None
    summary: Mapping[str, Json]
    is_whole: bool
    """Whether it can be asked here."""


def keep(
    connection: Connection,
    monitor: str,
    round_id: int,
    summary: Mapping[str, Json],
    tests: bytes,
    examples: bytes | None,
    first_round: int,
    made_at: datetime,
) -> None:
    """Keep what was made with a round, in the place of what was there; older ones give up their tests.

    ``first_round`` is the number of the first round of which it looked at inputs.
    """
    connection.execute(tomographies.delete().where(tomographies.c.round_id == round_id))
    fits = len(tests) <= LARGEST
    own = {"monitor": monitor, "made_at": made_at, "summary": dict(summary), "first_round": first_round}
    beside = examples if examples is not None and len(examples) <= LARGEST else None
    connection.execute(
        tomographies.insert().values(round_id=round_id, tests=tests if fits else None, examples=beside, **own)
    )
    of_monitor = tomographies.c.monitor == monitor
    newest = sa.select(tomographies.c.round_id).where(of_monitor).order_by(tomographies.c.round_id.desc()).limit(WHOLE)
    old = of_monitor, tomographies.c.round_id < sa.select(sa.func.min(newest.subquery().c.round_id)).scalar_subquery()
    connection.execute(tomographies.update().where(*old).values(tests=None, examples=None))


def newest(connection: Connection, monitor: str, limit: int) -> list[Kept]:
    """Those of a monitor, newest first."""
    query = _query().where(tomographies.c.monitor == monitor).order_by(tomographies.c.round_id.desc()).limit(limit)
    return [_kept(row) for row in connection.execute(query)]


def of_round(connection: Connection, monitor: str, number: int) -> Kept | None:
    """The one that was made with a round; None where none was."""
    own = tomographies.c.monitor == monitor, rounds.c.number == number
    row = connection.execute(_query().where(*own)).first()
    return None if row is None else _kept(row)


def tests_of(connection: Connection, round_id: int) -> bytes | None:
    """All of its tests, as they were given to :func:`keep`."""
    return _content(connection, tomographies.c.tests, round_id)


def examples_of(connection: Connection, round_id: int) -> bytes | None:
    """Its examples, as they were given to :func:`keep`."""
    return _content(connection, tomographies.c.examples, round_id)


def erase_examples(connection: Connection, round_id: int) -> None:
    """Erase the examples that may show inputs of a round: those of every tomography that looked at them."""
    own = sa.select(rounds.c.monitor, rounds.c.number).where(rounds.c.id == round_id).subquery()
    looked = (
        tomographies.c.monitor == sa.select(own.c.monitor).scalar_subquery(),
        tomographies.c.round_id >= round_id,
        tomographies.c.first_round <= sa.select(own.c.number).scalar_subquery(),
    )
    connection.execute(tomographies.update().where(*looked).values(examples=None))


def _content(connection: Connection, column: sa.Column[bytes | None], round_id: int) -> bytes | None:
    found: bytes | None = connection.scalar(sa.select(column).where(tomographies.c.round_id == round_id))
    return found


def _query() -> Query:
    own = tomographies.c
    of_round = rounds.c.number, rounds.c.ends_at, rounds.c.opened_at, rounds.c.model_version, rounds.c.run_id
    whole = own.tests.is_not(None).label("is_whole")
    joined = tomographies.join(rounds, rounds.c.id == own.round_id)
    return sa.select(own.round_id, own.made_at, own.summary, whole, *of_round).select_from(joined)


def _kept(row: Row) -> Kept:
    return Kept(
        row.round_id,
        row.number,
        row.ends_at or row.opened_at,
        row.made_at,
        row.model_version,
        row.run_id,
        row.summary,
        bool(row.is_whole),
    )

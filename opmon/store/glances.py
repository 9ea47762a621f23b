"""The last rounds of many monitors at once, in SQL: only what an overview shows of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.kept_quantities import names, spellings
from opmon.quantities import Quantity
from opmon.store._among import among, listed
from opmon.store.schema import estimates, rounds, verdicts
from opmon.store.verdicts import Entry, verdict_of


@dataclass(frozen=True, slots=True)
class Glance:
    """The newest estimate of one round, as a chart needs it."""

    round_id: int
    number: int
    model: tuple[str, str]
    ended_at: datetime
    quantity: tuple[str, str]
    """Its name and unit."""
    value: float
    low: float
    high: float
    provisional: bool

    def is_of(self, quantity: Quantity) -> bool:
        """Whether it is an estimate of this quantity."""
        name, unit = self.quantity
        return name in names(quantity) and unit in spellings(quantity)


def last_numbers(connection: Connection, monitors: Sequence[str]) -> dict[str, int]:
    """The number of the newest round of each monitor that has one."""
    last = _last(connection, monitors)
    return {row.monitor: row.last for row in connection.execute(sa.select(last).where(last.c.last.is_not(None)))}


def glances(connection: Connection, monitors: Sequence[str], count: int) -> dict[str, list[Glance]]:
    """Of each monitor those of its newest ``count`` rounds that have an estimate, oldest first."""
    recent, newer = _recent(connection, monitors, count), estimates.alias()
    is_newer = sa.and_(newer.c.round_id == estimates.c.round_id, newer.c.revision > estimates.c.revision)
    of_round = (rounds.c.model_name, rounds.c.model_version, rounds.c.ends_at, rounds.c.opened_at)
    numbers = (estimates.c.quantity, estimates.c.unit, estimates.c.value, estimates.c.low, estimates.c.high)
    query = (
        sa.select(rounds.c.monitor, rounds.c.id, rounds.c.number, *of_round, *numbers, estimates.c.provisional)
        .select_from(recent)
        .join(rounds, rounds.c.id == recent.c.id)
        .join(estimates, estimates.c.round_id == recent.c.id)
        .where(~sa.exists().where(is_newer))
    )
    found: dict[str, list[Glance]] = defaultdict(list)
    for monitor, key, number, name, version, ends, opened, quantity, unit, value, low, high, open_ in sorted(
        connection.execute(query).all(), key=lambda row: row[2]
    ):
        told = Glance(key, number, (name, version), ends or opened, (quantity, unit), value, low, high, open_)
        found[monitor].append(told)
    return found


def said_of(connection: Connection, numbers: Mapping[int, int]) -> dict[int, dict[str, Entry]]:
    """What each rule said last of some rounds, by the round's id; ``numbers`` are the rounds' numbers by their ids."""
    found: dict[int, dict[str, Entry]] = defaultdict(dict)
    if not numbers:
        return found
    query = sa.select(verdicts).where(among(connection, verdicts.c.round_id, list(numbers)))
    for row in connection.execute(query.order_by(verdicts.c.revision)):
        found[row.round_id][row.rule] = Entry(row.round_id, numbers[row.round_id], row.revision, verdict_of(row))
    return found


def _recent(connection: Connection, monitors: Collection[str], count: int) -> sa.Subquery:
    """The ids of the newest ``count`` rounds of each monitor.

    PostgreSQL is asked for those of each monitor in turn: it would join all rounds that there are, and then look which
    of them are new. SQLite looks them up one monitor after the other by itself, and could not be asked so.
    """
    if connection.dialect.name == "sqlite":
        last = _last(connection, monitors)
        newest = sa.and_(rounds.c.monitor == last.c.monitor, rounds.c.number > last.c.last - count)
        return sa.select(rounds.c.id).select_from(last).join(rounds, newest).subquery()
    names = listed(connection, list(monitors))
    of_each = (
        sa.select(rounds.c.id)
        .where(rounds.c.monitor == names.c.value)
        .order_by(rounds.c.number.desc())
        .limit(count)
        .lateral()
    )
    return sa.select(of_each.c.id).select_from(names.join(of_each, sa.true())).subquery()


def _last(connection: Connection, monitors: Collection[str]) -> sa.Subquery:
    """The monitors with the numbers of their newest rounds: an index gives each at once, however many rounds it has."""
    names = listed(connection, list(monitors))
    number = (
        sa.select(rounds.c.number)
        .where(rounds.c.monitor == names.c.value)
        .order_by(rounds.c.number.desc())
        .limit(1)
        .scalar_subquery()
    )
    return sa.select(names.c.value.label("monitor"), number.label("last")).subquery()

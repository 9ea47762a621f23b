"""Rounds long past lose their tasks, labels and draws, in SQL; what was found out from them stays.

Everything of one round goes in one transaction, so that a kill leaves it whole or gone. Whoever speaks of a task of it
meanwhile is waited for, and then the round stays: its estimate is to hear of that first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store import grouped, tomographies
from opmon.store._among import among, portions
from opmon.store.rounds import Round
from opmon.store.schema import (
    assignments,
    attachments,
    deliveries,
    estimates,
    events,
    handed,
    labels,
    rolled,
    rounds,
    slices,
    tallies,
    tasks,
)
from opmon.store.states import RoundState

ROUNDS = "rounds"
_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back something that is configured looks."""

    rounds: int
    """The newest rounds: of the monitor, and of each model version that was met since ``since``."""
    within: timedelta | None
    """What ended so long before the monitor's newest round."""
    since: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """What a round still has that goes with its labels."""

    tasks: int
    labels: int
    bytes: int


def held(connection: Connection, round_: Round) -> Held:
    """What of a round would go."""
    own = tasks.c.round_id == round_.id
    large = (tasks.c.input_id, tasks.c.prediction, sa.cast(tasks.c.variables, sa.Text), tasks.c.scores)
    size = sum((sa.func.coalesce(sa.func.length(column), 0) for column in large), sa.literal(0))
    count, size_ = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(size), 0)).where(own)
    ).one()
    said = connection.scalar(sa.select(sa.func.count()).where(labels.c.round_id == round_.id)) or 0
    return Held(count, said, size_ + len(round_.draw or b""))


def stays(connection: Connection, monitor: str, numbers: Collection[int], reach: Reach) -> dict[int, str]:
    """Why these rounds, which are old enough and over, are not to lose their labels yet; the others are not there."""
    found: dict[int, str] = {}
    if not numbers:
        return found
    near = _near(connection, monitor, reach)
    candidates = rounds.c.monitor == monitor, rounds.c.number.in_(list(numbers))
    query = sa.select(rounds.c.id, rounds.c.number, rounds.c.state, rounds.c.ready, rounds.c.reported)
    newest_task = connection.scalar(sa.select(tasks.c.round_id).order_by(tasks.c.id.desc()).limit(1))
    for row in connection.execute(query.where(*candidates).order_by(rounds.c.number)).all():
        open_ = 0 if row.state == RoundState.ABANDONED else _open(connection, row.id)
        if row.number in near:
            found[row.number] = "something that is configured may look back on them"
        elif row.id == newest_task:
            found[row.number] = "the newest task of the database is theirs"  # SQLite would give its number once more
        elif row.ready or _untold(connection, row.id, row.reported):
            found[row.number] = "an estimate of theirs is still to be made or told: run the monitor"
        elif _undelivered(connection, row.id):
            found[row.number] = "an event of theirs is not delivered yet"
        elif open_:
            found[row.number] = (
                "tasks of theirs are still open: they are closed by answers, and by keep: {payloads: …} where that is "
                "over before"
            )
    return found


def empty(connection: Connection, round_: Round, at: datetime, stands: Collection[str]) -> bool:
    """Remove the tasks, labels and draw of a round, and what newer revisions took the place of.

    ``stands`` are the parts of the log in which the monitor knows where it stands: the slices of the others stay, and
    so do all of a round that was given up, whose inputs may still go to a new one. False: labels came meanwhile, and
    the round stays as it was.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete = ON")  # what is removed is not left in free pages
    own = sa.select(tasks.c.id).where(tasks.c.round_id == round_.id).order_by(tasks.c.id)
    ids = connection.scalars(own.with_for_update()).all()
    row = connection.execute(sa.select(rounds.c.state, rounds.c.ready).where(rounds.c.id == round_.id)).one()
    if row.ready or not RoundState(row.state).is_over:
        return False
    for some in portions(ids, _AT_ONCE):
        for table in (labels, assignments, handed, attachments):
            connection.execute(table.delete().where(among(connection, table.c.task_id, some)))
        connection.execute(tasks.delete().where(among(connection, tasks.c.id, some)))
    tomographies.erase_examples(connection, round_.id)
    grouped.without_examples(connection, round_.id)
    _remove_superseded(connection, round_)
    if round_.state == RoundState.CLOSED:
        _remove_slices(connection, round_.id, stands)
    gone = {"labels_pruned_at": at, "draw": None, "urgent": False}
    span = {"first_task": ids[0], "last_task": ids[-1]} if ids else {}
    connection.execute(rounds.update().where(rounds.c.id == round_.id).values(gone | span))
    return True


def _near(connection: Connection, monitor: str, reach: Reach) -> set[int]:
    """The numbers of the rounds that something may look back on."""
    ended = sa.func.coalesce(rounds.c.ends_at, rounds.c.opened_at)
    own = sa.select(rounds.c.number).where(rounds.c.monitor == monitor)
    near = set(connection.scalars(own.order_by(rounds.c.number.desc()).limit(reach.rounds)))
    version = rounds.c.model_name, rounds.c.model_version
    for name, of in connection.execute(
        sa.select(*version).where(rounds.c.monitor == monitor, ended >= reach.since).distinct()
    ).all():
        of_version = own.where(version[0] == name, version[1] == of)
        near |= set(connection.scalars(of_version.order_by(rounds.c.number.desc()).limit(reach.rounds)))
    if reach.within is not None:
        last = connection.scalar(sa.select(sa.func.max(ended)).where(rounds.c.monitor == monitor))
        if last is not None:
            near |= set(connection.scalars(own.where(ended >= last - reach.within)))
    return near


def _open(connection: Connection, round_id: int) -> int:
    open_ = tasks.c.round_id == round_id, tasks.c.lacks > 0, tasks.c.gold.is_(None), tasks.c.erased_at.is_(None)
    return connection.scalar(sa.select(sa.func.count()).where(*open_)) or 0


def _untold(connection: Connection, round_id: int, reported: int) -> bool:
    newest = connection.scalar(sa.select(sa.func.max(estimates.c.revision)).where(estimates.c.round_id == round_id))
    return newest is not None and newest > reported


def _undelivered(connection: Connection, round_id: int) -> bool:
    waits = sa.select(deliveries.c.id).join(events, events.c.id == deliveries.c.event_id)
    waits = waits.where(events.c.round_id == round_id, deliveries.c.state == "pending").limit(1)
    return connection.scalar(waits) is not None


def _remove_superseded(connection: Connection, round_: Round) -> None:
    """What draws told with revisions that nothing joins any more, and joined rounds that were joined anew since."""
    own = estimates.c.round_id == round_.id
    known = [row.id for row in connection.execute(sa.select(estimates.c.id).where(own))]
    if not known:
        return
    first_final = connection.scalar(sa.select(sa.func.min(estimates.c.id)).where(own, ~estimates.c.provisional))
    superseded = [each for each in known if each not in (max(known), first_final)]
    if superseded:
        connection.execute(tallies.delete().where(tallies.c.estimate_id.in_(superseded)))
    later, made, of = rolled.alias(), estimates.alias(), rounds.alias()
    anew = (
        sa.select(later.c.estimate_id)
        .join(made, made.c.id == later.c.estimate_id)
        .join(of, of.c.id == made.c.round_id)
        .where(of.c.monitor == round_.monitor, later.c.as_of == rolled.c.as_of)
        .where(later.c.estimate_id > rolled.c.estimate_id)
        .where(of.c.number <= round_.number)  # else it tells of fewer of the rounds before the last one
    )
    connection.execute(rolled.delete().where(rolled.c.estimate_id.in_(known), anew.exists()))


def _remove_slices(connection: Connection, round_id: int, stands: Collection[str]) -> None:
    """What of the log a round covered, as far as the monitor's positions alone tell that it was read."""
    query = sa.select(slices.c.id, slices.c.part).where(slices.c.round_id == round_id)
    read: Sequence[int] = [row.id for row in connection.execute(query) if row.part in stands]
    for some in portions(read, _AT_ONCE):
        connection.execute(slices.delete().where(among(connection, slices.c.id, some)))

"""The rounds of one model version, and the versions that rounds still need."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.rounds import Round, in_order
from opmon.store.schema import rounds
from opmon.store.states import RoundState


def versions_needed(connection: Connection, model_name: str) -> set[str]:
    """The versions of a model that rounds are open of, and each monitor's newest two: the current and the one before.

    Of all monitors: they may share one folder of models.
    """
    unfinished_ = sa.func.sum(sa.case((rounds.c.state.in_((RoundState.CLOSED, RoundState.ABANDONED)), 0), else_=1))
    query = (
        sa.select(rounds.c.monitor, rounds.c.model_version, unfinished_.label("open"))
        .where(rounds.c.model_name == model_name)
        .group_by(rounds.c.monitor, rounds.c.model_version)
        .order_by(sa.func.max(rounds.c.number).desc())
    )
    needed: set[str] = set()
    newest_two: Counter[str] = Counter()
    for row in connection.execute(query):
        newest_two[row.monitor] += 1
        if row.open or newest_two[row.monitor] <= 2:
            needed.add(row.model_version)
    return needed


def awaited(connection: Connection, round_: Round, now: datetime) -> list[Round]:
    """The rounds before this one, of the same model version, whose labels are still coming in; oldest first.

    One that could not be drawn yet, that has all its labels and still cannot go on, or whose deadline is over keeps no
    other waiting.
    """
    query = (
        sa.select(rounds)
        .where(rounds.c.monitor == round_.monitor, rounds.c.state.in_((RoundState.DRAWN, RoundState.LABELLING)))
        .where(sa.or_(rounds.c.deadline_at.is_(None), rounds.c.deadline_at > now))
        .where(sa.or_(rounds.c.spoken < rounds.c.asked, rounds.c.problem.is_(None)))
    )
    waiting_ = in_order(connection, query)
    return [each for each in waiting_ if each.number < round_.number and each.model == round_.model]


def last_end_before(connection: Connection, round_: Round) -> datetime | None:
    """When the last input came of the rounds before this one of its model version; None without any."""
    of_version, ends = _of_version(round_), rounds.c.ends_at
    later = sa.select(sa.func.count()).select_from(rounds).where(*of_version, rounds.c.number >= round_.number)
    timed = sa.select(rounds.c.number, ends.label("at")).where(*of_version, ends.is_not(None)).order_by(ends.desc())
    untimed = sa.select(rounds.c.number, rounds.c.opened_at.label("at")).where(*of_version, ends.is_(None))
    # of the newest few, by time, one is no later round
    newest_few = connection.execute(timed.limit((connection.scalar(later) or 0) + 1)).all()
    ends_known = [*newest_few, *connection.execute(untimed)]
    return max((row.at for row in ends_known if row.number < round_.number), default=None)


def first_scored_run(connection: Connection, round_: Round) -> str | None:
    """The MLflow run of the first round of the same model version that had inputs, before this one; None without."""
    query = (
        sa.select(rounds.c.run_id)
        .where(*_of_version(round_), rounds.c.number < round_.number)
        .where(rounds.c.run_id.is_not(None), rounds.c.inputs > 0)
        .order_by(rounds.c.number)
        .limit(1)
    )
    return connection.scalar(query)


def _of_version(round_: Round) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        rounds.c.monitor == round_.monitor,
        rounds.c.model_name == round_.model_name,
        rounds.c.model_version == round_.model_version,
    )

"""Which monitors have something to do before their schedule says so: one indexed query for all of them.

A round is *ready* where labels let it go on: all its tasks are settled, it has an estimate that is not told yet or is
to be told again, or labels came after that. One that is told and waits for its turn to be judged goes on with the round
it waits for. The mark is kept in the transactions that change what it depends on: those that record labels and those
that move a round; so nobody has to look through the labels to find out.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.deliveries import first_in_line
from opmon.store.outbox import SILENCE
from opmon.store.schema import estimates, events, labels, rounds
from opmon.store.states import RoundState


def monitors_with_work(connection: Connection, at: datetime) -> set[str]:
    """The monitors of which a round is ready, or a delivery due."""
    waiting = first_in_line(at, events.c.rule != SILENCE).subquery()
    query = sa.union(
        sa.select(rounds.c.monitor).where(rounds.c.ready),
        sa.select(waiting.c.monitor).where(waiting.c.place == 1, waiting.c.due),
    )
    return set(connection.scalars(query))


def mark(connection: Connection, round_ids: Collection[int]) -> None:
    """Say anew of these rounds, which the transaction has locked or changed, whether they are ready."""
    connection.execute(_MARK.where(rounds.c.id.in_(round_ids)))


def count(connection: Connection, round_id: int, more: int, more_gold: int) -> None:
    """Count so many more settled tasks of a round, and say anew whether it is ready.

    Labels came that are in no other count: it may be ready, too, where no task was settled. While a round is in
    labelling that follows from its own row, which is locked by its change: everybody who answers waits for whoever has
    changed it and has not committed, so that there is no other question to the server in between. In any other state
    it follows from labels and estimates, which are looked at when no one else can add any.
    """
    values = {"round": round_id, "more": more, "more_gold": more_gold}
    if connection.execute(_COUNT_IN_LABELLING, values).rowcount == 0:
        connection.execute(_LOCK, {"round": round_id}).all()
        connection.execute(_COUNT, values)


_SEEN = sa.select(sa.func.max(estimates.c.labels_seen)).where(estimates.c.round_id == rounds.c.id).scalar_subquery()
_REVISION = sa.select(sa.func.max(estimates.c.revision)).where(estimates.c.round_id == rounds.c.id).scalar_subquery()
_OWN = labels.c.round_id == rounds.c.id, ~labels.c.gold
_HAVE = sa.select(sa.func.count()).where(*_OWN).scalar_subquery()
_ANSWERS = sa.select(sa.func.count(labels.c.truth)).where(*_OWN).scalar_subquery()


def _ready(spoken: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Whether a round is ready that has so many settled tasks."""
    told = sa.and_(rounds.c.state == RoundState.ESTIMATED, rounds.c.reported >= _REVISION, _HAVE <= _SEEN)
    return sa.case(
        (rounds.c.state == RoundState.LABELLING, spoken >= rounds.c.asked),
        (told, sa.false()),
        (rounds.c.state == RoundState.ESTIMATED, sa.true()),
        # one that was closed without an estimate waits for a first answer: skips alone change nothing
        (sa.and_(rounds.c.state == RoundState.CLOSED, _SEEN.is_(None)), _ANSWERS > 0),
        (rounds.c.state == RoundState.CLOSED, sa.or_(_HAVE > _SEEN, rounds.c.reported < _REVISION)),
        else_=sa.false(),
    )


_MARK = rounds.update().values(ready=_ready(rounds.c.spoken))
_LOCK = sa.select(rounds.c.id).where(rounds.c.id == sa.bindparam("round")).with_for_update(key_share=True)
"""On SQLite a writing transaction is alone anyway."""
_MORE = sa.bindparam("more", type_=sa.Integer)
_COUNTED = {
    "spoken": rounds.c.spoken + _MORE,
    "gold_spoken": rounds.c.gold_spoken + sa.bindparam("more_gold", type_=sa.Integer),
}
_COUNT = (
    rounds.update()
    .where(rounds.c.id == sa.bindparam("round"))
    .values(**_COUNTED, ready=_ready(rounds.c.spoken + _MORE))
)
_COUNT_IN_LABELLING = (
    rounds.update()
    .where(rounds.c.id == sa.bindparam("round"), rounds.c.state == RoundState.LABELLING)
    .values(**_COUNTED, ready=rounds.c.spoken + _MORE >= rounds.c.asked)
)

"""Whether what is in the database can be: its pages, and what its rows say of each other."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store._copying import tables_of
from opmon.store.engine import Store
from opmon.store.migrate import HEAD, revision_of
from opmon.store.schema import labels, rounds, tasks
from opmon.wording import counted

_SHOWN = 5
"""Rounds that are named; more are counted."""


def problems(store: Store) -> Iterator[str]:
    """What is wrong with the database, in words; nothing where nothing is. It may take minutes on a large one."""
    with store.read(unhurried=True) as connection:
        if store.is_sqlite:
            found = connection.exec_driver_sql("PRAGMA integrity_check(10)").scalars().all()
            yield from (f"its file is damaged: {said}" for said in found if said != "ok")
            if found != ["ok"]:
                return
        yield from _orphans(connection)
        if revision_of(store, connection) == HEAD:
            yield from _strays(connection)
            yield from _miscounted(connection)
            yield from _half_emptied(connection)


def rows_in(store: Store) -> dict[str, int]:
    """How many rows each table has; reading them all also shows whether they can be read."""
    with store.read(unhurried=True) as connection:
        return {
            table.name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0
            for table in tables_of(connection)
        }


def _orphans(connection: Connection) -> Iterator[str]:
    """Rows that refer to one that is not there."""
    for table in tables_of(connection):
        for key in sorted(table.foreign_keys, key=lambda each: each.parent.name):
            parent = key.column.table.alias()
            gone = sa.not_(sa.exists().where(parent.c[key.column.name] == key.parent))
            query = sa.select(sa.func.count()).select_from(table).where(key.parent.is_not(None), gone)
            count = connection.scalar(query)
            if count:
                named = f"the row of {key.column.table.name} that {key.parent.name} names is not there"
                yield f"{counted(count, 'row')} of {table.name}: {named}"


def _strays(connection: Connection) -> Iterator[str]:
    """Labels that say another round than their task does: no constraint holds the two together."""
    pairs = labels.join(tasks, tasks.c.id == labels.c.task_id)
    query = sa.select(sa.func.count()).select_from(pairs).where(labels.c.round_id != tasks.c.round_id)
    count = connection.scalar(query)
    if count:
        yield f"{counted(count, 'label names', 'labels name')} another round than the task does"


def _miscounted(connection: Connection) -> Iterator[str]:
    """Rounds that count their tasks otherwise than there are: they would wait for answers for ever, or not at all."""
    own = tasks.c.round_id == rounds.c.id, tasks.c.gold.is_(None)
    there = sa.select(sa.func.count()).where(*own).scalar_subquery()
    settled = sa.select(sa.func.count()).where(*own, tasks.c.lacks <= 0).scalar_subquery()
    query = sa.select(rounds.c.monitor, rounds.c.number).where((rounds.c.asked != there) | (rounds.c.spoken != settled))
    query = query.where(rounds.c.labels_pruned_at.is_(None))
    found = connection.execute(query.order_by(rounds.c.monitor, rounds.c.number)).all()
    if found:
        named = ", ".join(f"{row.monitor} {row.number}" for row in found[:_SHOWN])
        more = "" if len(found) <= _SHOWN else ", …"
        yield f"{counted(len(found), 'round counts', 'rounds count')} tasks wrongly: {named}{more}"


def _half_emptied(connection: Connection) -> Iterator[str]:
    """Rounds whose labels were pruned, and that have tasks all the same: nothing would ever look at them."""
    own = sa.select(sa.func.count()).select_from(tasks.join(rounds, rounds.c.id == tasks.c.round_id))
    count = connection.scalar(own.where(rounds.c.labels_pruned_at.is_not(None)))
    if count:
        yield f"{counted(count, 'task is', 'tasks are')} of rounds whose labels were pruned"

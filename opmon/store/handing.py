"""Which tasks a label provider has, and how far its answers were heard, in SQL.

A task is noted as handed over after the provider took it: one that was killed in between is handed over again, and the
provider, which knows tasks by their key, leaves it as it is. Answers and the cursor behind them are kept in one
transaction. Another provider begins anew: it is handed what is still open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.queue import select_open, task_of, with_bytes
from opmon.store.schema import Query, Row, handed, providers, rounds, tasks
from opmon.store.states import RoundState
from opmon.types import Task

_AT_ONCE = 500
_ORDER = rounds.c.urgent.desc(), rounds.c.number, tasks.c.wave, tasks.c.place


@dataclass(frozen=True)
class Standing:
    """How a provider stands with a monitor."""

    cursor: str = ""
    reconciled_at: datetime | None = None
    failures: int = 0
    """How many calls running have failed."""
    failing_since: datetime | None = None
    rests_until: datetime | None = None
    problem: str | None = None
    """The last failure."""

    @classmethod
    def of(cls, row: Row) -> Standing:
        """From a row of the table."""
        return cls(row.cursor, row.reconciled_at, row.failures, row.failing_since, row.rests_until, row.problem)


def standing(connection: Connection, monitor: str, provider: str) -> Standing:
    """As it was last noted; of one that is new, its beginning."""
    query = sa.select(providers).where(providers.c.monitor == monitor, providers.c.provider == provider)
    row = connection.execute(query).one_or_none()
    return Standing() if row is None else Standing.of(row)


def failing(connection: Connection, monitors: Collection[str]) -> dict[tuple[str, str], Standing]:
    """How those providers stand whose last call failed, by monitor and provider."""
    query = sa.select(providers).where(providers.c.failures > 0, providers.c.monitor.in_(monitors))
    return {(row.monitor, row.provider): Standing.of(row) for row in connection.execute(query)}


def note(connection: Connection, monitor: str, provider: str, **values: object) -> None:
    """Keep what has changed of :class:`Standing`."""
    mine = providers.c.monitor == monitor, providers.c.provider == provider
    if not connection.execute(providers.update().where(*mine).values(**values)).rowcount:
        first: dict[str, object] = {"cursor": "", "failures": 0, **values}
        connection.execute(providers.insert().values(monitor=monitor, provider=provider, **first))


def unhanded(connection: Connection, monitor: str, provider: str, limit: int, at: datetime) -> list[Task]:
    """The open tasks of waiting rounds that the provider was not given, in the order in which they are to be met.

    Those that still wait for truth at the moment ``at`` are left out.
    """
    query = _waiting(monitor, at).where(~_given(provider)).order_by(*_ORDER)
    return with_bytes(connection, [task_of(row) for row in connection.execute(query.limit(limit))])


def note_handed(connection: Connection, provider: str, task_ids: Sequence[int], at: datetime) -> None:
    """The provider has taken these tasks."""
    connection.execute(handed.insert(), [{"task_id": task, "provider": provider, "at": at} for task in task_ids])


def open_with(connection: Connection, monitor: str, provider: str) -> dict[str, int]:
    """The tasks that the provider was given and that still wait for an answer: their numbers by their keys."""
    given = (task_of(row) for row in connection.execute(_waiting(monitor).where(_given(provider))))
    return {task.key: task.id for task in given}


def take_back(connection: Connection, provider: str, task_ids: Iterable[int]) -> None:
    """The provider has these tasks no more."""
    wanted = sorted(task_ids)
    for start in range(0, len(wanted), _AT_ONCE):
        some = handed.c.task_id.in_(wanted[start : start + _AT_ONCE])
        connection.execute(handed.delete().where(handed.c.provider == provider, some))


def _waiting(monitor: str, at: datetime | None = None) -> Query:
    return select_open(at).where(rounds.c.monitor == monitor, rounds.c.state == RoundState.LABELLING)


def _given(provider: str) -> sa.Exists:
    return sa.select(handed.c.task_id).where(handed.c.task_id == tasks.c.id, handed.c.provider == provider).exists()

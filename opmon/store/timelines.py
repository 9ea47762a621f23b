"""The timelines of a monitor: one MLflow run for each model version, with what says whether it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.rounds import UNFINISHED
from opmon.store.schema import cycles, rounds


@dataclass(frozen=True)
class Timeline:
    """The rounds of one model version, as one run."""

    run_id: str
    over: bool
    """Whether its version was replaced, and none of its rounds waits for anything."""


def of(connection: Connection, monitor: str, current: tuple[str, str]) -> list[Timeline]:
    """All timelines of a monitor whose address means the version ``current`` now.

    A version was replaced that the address has meant once and means no more, and one that only came along, as a canary
    does, once it has had no round since ``current`` took its place.
    """
    meant = rounds.c.plan["current_version"].as_string()
    is_current = sa.and_(rounds.c.model_name == current[0], meant == current[1])
    reign = sa.select(sa.func.max(rounds.c.number)).where(rounds.c.monitor == monitor, sa.not_(is_current))
    began = (connection.scalar(reign) or 0) + 1
    was_meant = sa.func.max(sa.case((meant == rounds.c.model_version, 1), else_=0))
    waits = sa.func.max(sa.case((rounds.c.state.in_(UNFINISHED), 1), else_=0))
    query = sa.select(
        rounds.c.timeline_run_id,
        rounds.c.model_name,
        rounds.c.model_version,
        was_meant.label("was_meant"),
        waits.label("waits"),
        sa.func.max(rounds.c.number).label("last"),
    )
    query = query.where(rounds.c.monitor == monitor, rounds.c.timeline_run_id.is_not(None))
    query = query.group_by(rounds.c.timeline_run_id, rounds.c.model_name, rounds.c.model_version)
    return [
        Timeline(
            row.timeline_run_id,
            (row.model_name, row.model_version) != current
            and not row.waits
            and bool(row.was_meant or row.last < began),
        )
        for row in connection.execute(query)
    ]


def monitors(connection: Connection) -> dict[str, datetime | None]:
    """The monitors that have rounds, with the moment of their last cycle; None where that is not known."""
    query = sa.select(rounds.c.monitor, cycles.c.at).distinct()
    query = query.select_from(rounds.outerjoin(cycles, cycles.c.monitor == rounds.c.monitor))
    return {row.monitor: row.at for row in connection.execute(query)}

"""What was counted over all rounds of a monitor."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store._among import among
from opmon.store.schema import rounds


@dataclass(frozen=True)
class Totals:
    """The sums over the rounds of one monitor."""

    received: int = 0
    """Inputs that came into rounds."""
    spoken: int = 0
    """Tasks of which all was said that was asked."""
    rounds: Mapping[str, int] = field(default_factory=dict)
    """Rounds by state."""


def totals(connection: Connection, monitors: Collection[str]) -> dict[str, Totals]:
    """By monitor; those without a round are left out."""
    query = (
        sa.select(
            rounds.c.monitor,
            rounds.c.state,
            sa.func.count(),
            sa.func.sum(rounds.c.received),
            sa.func.sum(rounds.c.spoken),
        )
        .where(among(connection, rounds.c.monitor, list(monitors)))
        .group_by(rounds.c.monitor, rounds.c.state)
    )
    found: dict[str, Totals] = {}
    for monitor, state, count, received, spoken in connection.execute(query):
        own = found.get(monitor, Totals())
        states = {**own.rounds, str(state): count}
        found[monitor] = Totals(own.received + received, own.spoken + spoken, rounds=states)
    return found

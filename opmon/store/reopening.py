"""Tasks of which a further opinion is asked are handed out again, in no order that tells them from others."""

from __future__ import annotations

import random
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store._among import among, portions
from opmon.store.schema import handed, tasks


def hand_out_again(connection: Connection, task_ids: Sequence[int]) -> None:
    """Put each at a random place among the open tasks of its wave, and let the label provider be handed it once more.

    At its old place it would come before all that nobody has seen yet: whoever met such tasks in a row would know that
    somebody else has spoken of them.
    """
    for some in portions(sorted(task_ids)):
        rows = connection.execute(
            sa.select(tasks.c.id, tasks.c.round_id, tasks.c.wave).where(among(connection, tasks.c.id, some))
        ).all()
        for wave in {(row.round_id, row.wave) for row in rows}:
            low, high = connection.execute(
                sa.select(sa.func.min(tasks.c.place), sa.func.max(tasks.c.place)).where(
                    tasks.c.round_id == wave[0], tasks.c.wave == wave[1], tasks.c.lacks > 0
                )
            ).one()
            dice = random.Random(f"{wave}{sorted(some)}")  # noqa: S311 - no secret: only an order
            places = [
                {"task": row.id, "to": dice.randint(low, high)} for row in rows if (row.round_id, row.wave) == wave
            ]
            moved = tasks.update().where(tasks.c.id == sa.bindparam("task")).values(place=sa.bindparam("to"))
            connection.execute(moved, places)
        connection.execute(handed.delete().where(among(connection, handed.c.task_id, some)))

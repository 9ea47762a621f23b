"""The hashes of the inputs that rounds have seen: what finds inputs that production logged twice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from opmon.store.rounds import Round
from opmon.store.schema import rounds, seen

REMEMBERED_ROUNDS = 10
"""In how many earlier rounds an input id is looked for."""


def hashes_before(connection: Connection, round_: Round) -> Iterator[NDArray[np.uint64]]:
    """The sorted hashes of the rounds before this one of its model version, and of those after it scored earlier."""
    before = _same_version(round_).where(rounds.c.number < round_.number).order_by(rounds.c.number.desc())
    after = _same_version(round_).where(rounds.c.number > round_.number)
    remembered = sa.union_all(sa.select(before.limit(REMEMBERED_ROUNDS).subquery()), after)
    for packed in connection.scalars(sa.select(seen.c.hashes).where(seen.c.round_id.in_(remembered))):
        yield np.frombuffer(packed, dtype=np.uint64)


def remember(connection: Connection, round_: Round, hashes: NDArray[np.uint64] | None) -> None:
    """Keep the sorted hashes of a round's inputs, and forget those of rounds long past."""
    if hashes is None or not len(hashes):
        return
    connection.execute(seen.delete().where(seen.c.round_id == round_.id))
    connection.execute(seen.insert().values(round_id=round_.id, hashes=hashes.astype(np.uint64).tobytes()))
    long_past = _same_version(round_).where(rounds.c.number < round_.number)
    long_past = long_past.order_by(rounds.c.number.desc()).offset(REMEMBERED_ROUNDS)
    connection.execute(seen.delete().where(seen.c.round_id.in_(long_past)))


def _same_version(round_: Round) -> sa.Select[tuple[int]]:
    return sa.select(rounds.c.id).where(
        rounds.c.monitor == round_.monitor,
        rounds.c.model_name == round_.model_name,
        rounds.c.model_version == round_.model_version,
    )

"""What failures of a round have in common, in SQL: in one piece with each revision of its estimate that was told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import estimates, failure_groups
from opmon.store.tallies import AT_ONCE
from opmon.types.grouped import FailureGroup


def put(connection: Connection, estimate: int, found: Sequence[FailureGroup]) -> None:
    """Keep the groups beside an estimate, by the estimate's number; told twice, they are there once."""
    connection.execute(failure_groups.delete().where(failure_groups.c.estimate_id == estimate))
    if found:
        connection.execute(failure_groups.insert().values(estimate_id=estimate, found=[asdict(each) for each in found]))


def without_examples(connection: Connection, round_id: int) -> None:
    """Forget the ids of inputs that the groups of a round name; what the failures have in common stays."""
    own = sa.select(estimates.c.id).where(estimates.c.round_id == round_id)
    for key, groups in of(connection, connection.scalars(own).all()).items():
        put(connection, key, [replace(each, examples=()) for each in groups])


def of(connection: Connection, keys: Iterable[int]) -> dict[int, tuple[FailureGroup, ...]]:
    """The groups by the number of the estimate; estimates without any are not there."""
    numbers = sorted(keys)
    found: dict[int, tuple[FailureGroup, ...]] = {}
    for start in range(0, len(numbers), AT_ONCE):
        query = sa.select(failure_groups).where(failure_groups.c.estimate_id.in_(numbers[start : start + AT_ONCE]))
        for row in connection.execute(query):
            found[row.estimate_id] = tuple(FailureGroup.of(each) for each in row.found)
    return found

"""The slices of a round in SQL: what was found of them with each revision of its estimate, in one piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import sliced
from opmon.store.tallies import AT_ONCE
from opmon.types.slicing import Sliced


def add(connection: Connection, estimate: int, found: Sequence[Sliced]) -> None:
    """Keep what was found of the slices beside an estimate, by the estimate's number, in the order they are shown."""
    if found:
        connection.execute(sliced.insert().values(estimate_id=estimate, found=[asdict(each) for each in found]))


def of(connection: Connection, estimates: Iterable[int]) -> dict[int, tuple[Sliced, ...]]:
    """What was found of the slices, by the number of the estimate; estimates without slices are not there."""
    numbers = sorted(estimates)
    found: dict[int, tuple[Sliced, ...]] = {}
    for start in range(0, len(numbers), AT_ONCE):
        query = sa.select(sliced).where(sliced.c.estimate_id.in_(numbers[start : start + AT_ONCE]))
        found |= {row.estimate_id: tuple(Sliced(**each) for each in row.found) for row in connection.execute(query)}
    return found

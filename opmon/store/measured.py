"""The further measures of a round in SQL, beside its main one: some for each revision of its estimate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon import kept_quantities
from opmon.quantities import Quantity
from opmon.store.schema import Row, estimates, measured
from opmon.store.tallies import AT_ONCE
from opmon.types import Estimate, Json


@dataclass(frozen=True)
class Measured:
    """What became of one measure of a round."""

    measure: str
    """The measure of the configuration that it belongs to: a table of many numbers has one of these for each."""
    quantity: Quantity
    estimate: Estimate | None
    why: str = ""
    """Why it is not known; empty where it is."""


IS_THERE = sa.exists().where(measured.c.estimate_id == estimates.c.id).label("has_further")
"""Whether anything was measured beside an estimate: what a query of estimates takes along, so that few are asked."""


def add(connection: Connection, estimate: int, some: Sequence[Measured]) -> None:
    """Keep what was measured beside an estimate, by the estimate's number, in the order in which it is shown."""
    if some:
        rows = [_values(each) | {"estimate_id": estimate, "place": place} for place, each in enumerate(some)]
        connection.execute(measured.insert(), rows)


def read(connection: Connection, keys: Sequence[int]) -> Mapping[int, tuple[Measured, ...]]:
    """What was measured beside these estimates, by the estimate's number; nothing for those that have nothing."""
    found: dict[int, list[Measured]] = defaultdict(list)
    beside = (estimates.c.frame_size, estimates.c.level, estimates.c.provisional)
    for start in range(0, len(keys), AT_ONCE):
        query = (
            sa.select(measured, *beside)
            .join(estimates, estimates.c.id == measured.c.estimate_id)
            .where(measured.c.estimate_id.in_(keys[start : start + AT_ONCE]))
            .order_by(measured.c.estimate_id, measured.c.place)
        )
        for row in connection.execute(query):
            found[row.estimate_id].append(_measured(row))
    return {key: tuple(own) for key, own in found.items()}


def of(connection: Connection, estimate: int) -> tuple[Measured, ...]:
    """What was measured beside one estimate."""
    return read(connection, [estimate]).get(estimate, ())


def quantity_values(quantity: Quantity) -> dict[str, Json]:
    """What the columns of a quantity hold."""
    values = kept_quantities.as_kept(quantity)
    meaning = {name: value for name, value in values.items() if name not in ("quantity", "unit")}
    return {"quantity": quantity.name, "unit": quantity.unit, "meaning": meaning or None}


def quantity_of(row: Row) -> Quantity:
    """The quantity in a row that has its columns."""
    return kept_quantities.kept({"quantity": row.quantity, "unit": row.unit, **(row.meaning or {})})


def _values(one: Measured) -> dict[str, Json]:
    estimate = one.estimate
    known: dict[str, Json] = dict.fromkeys(_OF_ESTIMATE)
    if estimate is not None:
        known = {name: getattr(estimate, name) for name in _OF_ESTIMATE}
    notes = [] if estimate is None else list(estimate.notes)
    return {"measure": one.measure, **quantity_values(one.quantity), **known, "notes": notes, "why": one.why or None}


_OF_ESTIMATE = ("value", "low", "high", "standard_error", "n", "response", "method")


def _measured(row: Row) -> Measured:
    quantity = quantity_of(row)
    if row.value is None:
        return Measured(row.measure, quantity, None, row.why or "")
    estimate = Estimate(
        **{name: getattr(row, name) for name in _OF_ESTIMATE},
        frame_size=row.frame_size,
        level=row.level,
        quantity=quantity,
        provisional=row.provisional,
        notes=tuple(row.notes),
    )
    return Measured(row.measure, quantity, estimate, row.why or "")

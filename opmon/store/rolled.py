"""The last rounds together in SQL, beyond their main measure: their slices and further measures, in one piece beside
the estimate that made them what they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon import quantities
from opmon.store.measured import Measured
from opmon.store.schema import estimates, rolled, rounds
from opmon.types import Document, Estimate
from opmon.types.slicing import Sliced

_BOUNDS = {"low": -math.inf, "high": math.inf}
"""JSON has no infinity: a bound that there is not is null."""


@dataclass(frozen=True)
class Rolled:
    """What is known of several rounds of one model version together, as of the last of them."""

    rounds: tuple[int, ...]
    """Their numbers, in order."""
    slices: tuple[Sliced, ...] = ()
    measures: tuple[Measured, ...] = ()
    """The measures beside the main one."""

    @property
    def as_of(self) -> int:
        return self.rounds[-1]


def add(connection: Connection, estimate: int, found: Rolled) -> None:
    """Keep it beside the estimate that it was made with, by the estimate's number."""
    stored = {
        "rounds": list(found.rounds),
        "slices": [asdict(each) for each in found.slices],
        "measures": [_stored(each) for each in found.measures],
    }
    connection.execute(rolled.insert().values(estimate_id=estimate, as_of=found.as_of, found=stored))


def of(connection: Connection, keys: Iterable[int]) -> dict[int, Rolled]:
    """By the number of the estimate; estimates that have none are not there."""
    query = sa.select(rolled).where(rolled.c.estimate_id.in_(list(keys)))
    return {row.estimate_id: _rolled(row.found) for row in connection.execute(query)}


def newest(connection: Connection, monitor: str, as_of: int) -> Rolled | None:
    """What the newest labels make of the rounds up to one; None where nothing is kept of it."""
    query = (
        sa.select(rolled.c.found)
        .join(estimates, estimates.c.id == rolled.c.estimate_id)
        .join(rounds, rounds.c.id == estimates.c.round_id)
        .where(rounds.c.monitor == monitor, rolled.c.as_of == as_of)
        .order_by(rolled.c.estimate_id.desc())
        .limit(1)
    )
    found = connection.scalar(query)
    return None if found is None else _rolled(found)


def _rolled(stored: Document) -> Rolled:
    return Rolled(
        tuple(stored["rounds"]),
        tuple(Sliced(**each) for each in stored["slices"]),
        tuple(_measured(each) for each in stored["measures"]),
    )


def _stored(one: Measured) -> Document:
    known = None
    if one.estimate is not None:
        known = {**asdict(one.estimate), "notes": list(one.estimate.notes)}
        known = {name: value for name, value in known.items() if name != "quantity"}
        known |= {name: None for name in _BOUNDS if not math.isfinite(known[name])}
    return {"measure": one.measure, "quantity": one.quantity.kept(), "estimate": known, "why": one.why}


def _measured(stored: Document) -> Measured:
    quantity, known = quantities.kept(stored["quantity"]), stored["estimate"]
    estimate = None
    if known is not None:
        bounds = {name: endless if known[name] is None else known[name] for name, endless in _BOUNDS.items()}
        estimate = Estimate(**known | bounds | {"quantity": quantity, "notes": tuple(known["notes"])})
    return Measured(stored["measure"], quantity, estimate, stored["why"])

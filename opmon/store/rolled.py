"""The last rounds together in SQL, beyond their main measure: their slices and further measures, in one piece beside
the estimate that made them what they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon import kept_quantities
from opmon.store.measured import Measured
from opmon.store.schema import estimates, rolled, rounds
from opmon.types import Document, Estimate
from opmon.types.slicing import Sliced

_BOUNDS = {"low": -math.inf, "high": math.inf}
"""JSON has no infinity: a bound that there is not is null."""


Main = tuple[tuple[int, ...], Estimate]
"""Rounds, and the main measure from the draws of all of them."""


@dataclass(frozen=True)
class Rolled:
    """What is known of several rounds of one model version together, as of the last of them."""

    rounds: tuple[int, ...]
    """Their numbers, in order."""
    slices: tuple[Sliced, ...] = ()
    measures: tuple[Measured, ...] = ()
    """The measures beside the main one."""
    main: Estimate | None = None
    """The main one, where more than the rounds' own estimates is needed to join them, as for an AUC."""
    earlier: tuple[Main, ...] = ()
    """Likewise as of rounds before the last one, which a late label changes too."""

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
    if found.main is not None:
        stored["main"] = _stored_main(found.main)
    if found.earlier:
        stored["earlier"] = [{"rounds": list(numbers), "main": _stored_main(main)} for numbers, main in found.earlier]
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


def mains(connection: Connection, monitor: str, first: int, last: int, until: int | None = None) -> dict[int, Main]:
    """The main measure as of each round from ``first`` to ``last`` of which it is kept, with the rounds it is made of.

    ``until`` is the key of an estimate after which none counts.
    """
    own = (rolled.c.found[each].label(each) for each in ("rounds", "main", "earlier"))
    query = (
        sa.select(*own)
        .join(estimates, estimates.c.id == rolled.c.estimate_id)
        .join(rounds, rounds.c.id == estimates.c.round_id)
        .where(rounds.c.monitor == monitor, rounds.c.number <= last, rolled.c.as_of >= first)
        .order_by(rolled.c.estimate_id)
    )
    if until is not None:
        query = query.where(rolled.c.estimate_id <= until)
    newest_of: dict[int, tuple[list[int], Document | None]] = {}
    for row in connection.execute(query):
        newest_of |= {each["rounds"][-1]: (each["rounds"], each["main"]) for each in row.earlier or ()}
        newest_of[row.rounds[-1]] = row.rounds, row.main
    known = {as_of: (tuple(numbers), _main(main)) for as_of, (numbers, main) in newest_of.items()}
    return {as_of: (numbers, main) for as_of, (numbers, main) in known.items() if main is not None}


def _rolled(stored: Document) -> Rolled:
    return Rolled(
        tuple(stored["rounds"]),
        tuple(Sliced(**each) for each in stored["slices"]),
        tuple(_measured(each) for each in stored["measures"]),
        _main(stored.get("main")),
    )


def _main(stored: Document | None) -> Estimate | None:
    return None if stored is None else _measured(stored).estimate


def _stored_main(main: Estimate) -> Document:
    return _stored(Measured(main.quantity.name, main.quantity, main))


def _stored(one: Measured) -> Document:
    known = None
    if one.estimate is not None:
        known = {**asdict(one.estimate), "notes": list(one.estimate.notes)}
        known = {name: value for name, value in known.items() if name != "quantity"}
        known |= {name: None for name in _BOUNDS if not math.isfinite(known[name])}
    quantity = kept_quantities.as_kept(one.quantity)
    return {"measure": one.measure, "quantity": quantity, "estimate": known, "why": one.why}


def _measured(stored: Document) -> Measured:
    quantity, known = kept_quantities.kept(stored["quantity"]), stored["estimate"]
    estimate = None
    if known is not None:
        bounds = {name: endless if known[name] is None else known[name] for name, endless in _BOUNDS.items()}
        estimate = Estimate(**known | bounds | {"quantity": quantity, "notes": tuple(known["notes"])})
    return Measured(stored["measure"], quantity, estimate, stored["why"])

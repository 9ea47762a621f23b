"""What drifted in a round, and whether with loss, in sentences: the same wherever it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from opmon.estimators.changes import Change
from opmon.quantities import Quantity
from opmon.types import Estimate
from opmon.types.drifting import DriftedPart, Loss, SliceDrift
from opmon.wording import counted, percent

NAMED = 5
"""So many columns or slices are named in a sentence."""


@dataclass(frozen=True)
class Compared:
    """What a round was compared with."""

    change: Change | None
    estimate: Estimate | None
    """The round's own final one."""
    against: tuple[int, ...]
    still: bool
    """Whether these rounds did not drift."""
    slices: int
    """So many slices and predicted classes were compared."""


def told(parts: Sequence[DriftedPart], loss: Loss, compared: Compared, slices: Sequence[SliceDrift]) -> tuple[str, ...]:
    """All that is known, a sentence each."""
    drifted = any(part.drifted for part in parts)
    said = [_part(part) for part in parts] if drifted else ["Nothing drifted that the tests can tell."]
    said += [_loss(drifted, loss, compared)] if drifted or compared.change is not None else []
    said += _in_slices(slices, compared)
    return tuple(said)


def _part(part: DriftedPart) -> str:
    if part.part == "predictions":
        return "The predictions drifted." if part.drifted else "The predictions did not drift."
    what = "inputs" if part.part == "inputs" else "model's scores"
    columns = f"{len(part.drifted)} of {counted(part.compared, 'column')}"
    return f"Of the {what} {columns} drifted{f': {_names(part.drifted)}' if part.drifted else ''}."


def _loss(drifted: bool, loss: Loss, compared: Compared) -> str:
    found, estimate = compared.change, compared.estimate
    if estimate is None:
        return "Whether the model became worse with it is not known before the round has a final estimate."
    if found is None:
        return (
            "Whether the model became worse with it is not known: no earlier round of this model version has a final "
            "estimate to compare with."
        )
    quantity = estimate.quantity
    by = quantity.difference(found.worse_by, quantity.digits(found.low, found.high))
    how = "counted over all inputs" if found.low == found.high else None
    how = how or f"{percent(estimate.level, 0)} interval: {_range(found, quantity)}"
    than = "the same as" if found.worse_by == 0 else f"{by} {'worse' if found.worse_by > 0 else 'better'} than"
    if found.is_open:
        return (
            f"Whether the model became worse with it is not known: {quantity.name} is {than} in {_before(compared)}, "
            "and a single round before does not tell how much rounds differ by chance."
        )
    with_what = f"{_before(compared)} ({how})"
    if loss == "loss":
        began = "The drift came with a loss" if drifted else "The model became worse without drift that the tests see"
        return f"{began}: {quantity.name} is {by} worse than in {with_what}."
    began = "No loss is seen with it" if drifted else f"Nor is a loss of {quantity.name} seen"
    return f"{began}: {quantity.name} is {than} in {with_what}."


def _before(compared: Compared) -> str:
    if len(compared.against) == 1:
        rounds = f"round {compared.against[0]}"
        return rounds if compared.still else f"{rounds}, which drifted as well"
    rounds = f"the {len(compared.against)} rounds before"
    return f"{rounds} in which no drift was seen" if compared.still else f"{rounds}, which drifted as well"


def _range(found: Change, quantity: Quantity) -> str:
    """The interval of a change, such as "1 to 3 points worse" or "1 point better to 3 points worse"."""
    digits = quantity.digits(found.low, found.high)
    if found.low >= 0 or found.high <= 0:
        near, far = sorted((abs(found.low), abs(found.high)))
        way = "worse" if found.low >= 0 else "better"
        first = quantity.difference(near, digits).partition(" ")[0]
        return (
            f"{first} to {quantity.difference(far, digits)} {way}" if math.isfinite(far) else f"{first} or more {way}"
        )
    return f"{_bound(found.low, 'better', quantity, digits)} to {_bound(found.high, 'worse', quantity, digits)}"


def _bound(by: float, way: str, quantity: Quantity, digits: int | None) -> str:
    return f"{quantity.difference(by, digits)} {way}" if math.isfinite(by) else f"any amount {way}"


def _in_slices(slices: Sequence[SliceDrift], compared: Compared) -> list[str]:
    said = []
    worse = [each for each in slices if each.worse_by is not None]
    if worse and compared.estimate is not None:
        quantity = compared.estimate.quantity
        names = ", ".join(
            f"{each.name} (by {_of_slice(each.worse_by, each, quantity)}{_at_least(each, quantity)})"
            for each in worse[:NAMED]
        )
        how = f"Surely worse than before, corrected for {counted(compared.slices, 'slice')} looked at"
        if all(each.worse_at_least == each.worse_by for each in worse):
            how = "Worse than before, counted over all of their inputs, which may be chance"
        said.append(f"{how}: {names}{_more(worse)}.")
    elif compared.slices and compared.change is not None:
        said.append(f"No single one of {counted(compared.slices, 'slice')} looked at is surely worse than before.")
    moved = [each for each in slices if each.drifted]
    if moved:
        names = "; ".join(f"{each.name} ({_names(each.drifted)})" for each in moved[:NAMED])
        said.append(f"Inputs drifted inside of these slices: {names}{_more(moved)}.")
    return said


def _at_least(each: SliceDrift, quantity: Quantity) -> str:
    """The least that a slice is worse; nothing where it was counted."""
    known = each.worse_at_least == each.worse_by
    return "" if known else f", at least {_of_slice(each.worse_at_least, each, quantity)}"


def _of_slice(by: float | None, each: SliceDrift, quantity: Quantity) -> str:
    """A loss with as many digits as the distance from the least that it may be bears."""
    value, least = each.worse_by or 0.0, each.worse_at_least or 0.0
    return quantity.difference(by or 0.0, quantity.digits(least, 2 * value - least))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(name if len(name) <= 40 else f"{name[:39]}…" for name in names[:NAMED])
    return f"{shown}{_more(names)}"


def _more(all_of_them: Sequence[object]) -> str:
    left = len(all_of_them) - NAMED
    return f" and {left} more" if left > 0 else ""

"""Two versions against each other, in a sentence: for the page and for the API."""

from __future__ import annotations

from collections.abc import Sequence

from opmon.quantities import Quantity
from opmon.queries.versions import VersionView, difference
from opmon.wording import points_between


def chosen(
    found: Sequence[VersionView], first: str | None, second: str | None
) -> tuple[VersionView | None, VersionView | None]:
    """The two that are asked for; unless others are, the newest against the last one before it."""
    by_name = {each.version: each for each in found}
    one = by_name.get(first or "", found[1] if len(found) > 1 else None)
    return one, by_name.get(second or "", found[0] if found else None)


def against(one: VersionView, two: VersionView, quantity: Quantity) -> str:
    """Which is better, each over the inputs that it answered itself."""
    found = difference(one.estimate, two.estimate)
    nearer = abs(two.estimate.value) < abs(one.estimate.value)
    better = nearer if quantity.better == "zero" else (found.value > 0) is (quantity.better == "higher")
    how = (
        ("higher" if found.value > 0 else "lower") if quantity.better == "neither" else "better" if better else "worse"
    )
    names = f"Version {two.version} is {quantity.difference(found.value)} {how} than {one.version}"
    if quantity.percent:
        interval = points_between(found.low, found.high)
    else:
        interval = f"{quantity.text(found.low)} to {quantity.text(found.high)}"
    if found.tells:
        return f"{names} (the {quantity.name} differs by {interval})."
    return (
        f"The labels do not tell versions {one.version} and {two.version} apart: "
        f"the {quantity.name} differs by {interval}, which may be nothing."
    )

"""Two versions against each other, in a sentence: for the page and for the API."""

from __future__ import annotations

from collections.abc import Sequence

from opmon.quantities import Quantity
from opmon.queries.versions import VersionView, difference
from opmon.wording import points_between


def chosen(
    found: Sequence[VersionView], first: str | None, second: str | None
) -> tuple[VersionView | None, VersionView | None]:
    """The two that are asked for, None for one that has no estimate; where none are asked for, the newest against the
    last one before it."""
    by_name = {each.version: each for each in found}
    one = by_name.get(first) if first else found[1] if len(found) > 1 else None
    return one, by_name.get(second) if second else found[0] if found else None


def against(one: VersionView, two: VersionView, quantity: Quantity) -> str:
    """Which is better, each over the inputs that it answered itself."""
    found = difference(one.estimate, two.estimate)
    up, down = _WORDS[quantity.better]
    how = up if found.value > 0 else down
    names = f"Version {two.version} is {quantity.difference(found.value)} {how} than {one.version}"
    if quantity.percent:
        interval = points_between(found.low, found.high)
    else:
        interval = f"{quantity.text(found.low)} to {quantity.text(found.high)}"
    what = f"the distance of the {quantity.name} from 0" if quantity.better == "zero" else f"the {quantity.name}"
    if found.tells:
        return f"{names} ({what} differs by {interval})."
    return (
        f"The labels do not tell versions {one.version} and {two.version} apart: "
        f"{what} differs by {interval}, which may be nothing."
    )


_WORDS = {
    "higher": ("better", "worse"),
    "lower": ("worse", "better"),
    "zero": ("farther from 0", "nearer to 0"),
    "neither": ("higher", "lower"),
}
"""What a version is of which a measure is higher, and lower."""

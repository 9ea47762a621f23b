"""The slices of a round, or of several together, in the words of ``opmon status``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opmon.wording import counted, percent

if TYPE_CHECKING:
    from rich.text import Text

    from opmon.quantities import Quantity
    from opmon.queries import RollingPoint, RoundView
    from opmon.types.slicing import Sliced

SHOWN = 5


def slice_lines(view: RoundView) -> Iterator[Text]:
    """Those of a round that are worse than the other inputs; where none is known to be, how far that could be said."""
    if view.estimate is not None:
        yield from _lines(view.slices, view.estimate.quantity, "")


def rolling_lines(point: RollingPoint) -> Iterator[Text]:
    """The same of several rounds together."""
    yield from _lines(point.slices, point.estimate.quantity, f" over these {len(point.rounds)} rounds")


def _lines(slices: Sequence[Sliced], quantity: Quantity, when: str) -> Iterator[Text]:
    from rich.text import Text

    from opmon.reports.slices import interval_of, worse_of

    worse = [each for each in slices if each.worse_by is not None]
    for each in worse[:SHOWN]:
        told = f"{interval_of(each, quantity)}, {worse_of(each, quantity)} ({percent(each.share, 0)} of the inputs)"
        yield Text(f"  slice {each.name}{when}: {told}", style="yellow")
    if len(worse) > SHOWN:
        yield Text(f"  and {len(worse) - SHOWN} more that are worse{when}: see the monitor's page", style="yellow")
    if slices and not worse:
        few = sum(each.note.startswith("too few to say") or not each.answers for each in slices)
        rest = f"; {few} of them {'has' if few == 1 else 'have'} too few answers to say" if few else ""
        yield Text(
            f"  none of {counted(len(slices), 'slice')} is known to be worse than the other inputs{when}{rest}",
            style="dim",
        )

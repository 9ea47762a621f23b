"""The slices of a round in the words of ``opmon status``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opmon.wording import counted, percent

if TYPE_CHECKING:
    from rich.text import Text

    from opmon.queries import RoundView

SHOWN = 5


def slice_lines(view: RoundView) -> Iterator[Text]:
    """Those that are worse than the other inputs; where none is known to be, how far that could be said."""
    from rich.text import Text

    from opmon.reports.slices import interval_of, worse_of

    if view.estimate is None or not view.slices:
        return
    quantity = view.estimate.quantity
    worse = [each for each in view.slices if each.worse_by is not None]
    for each in worse[:SHOWN]:
        told = f"{interval_of(each, quantity)}, {worse_of(each, quantity)} ({percent(each.share, 0)} of the inputs)"
        yield Text(f"  slice {each.name}: {told}", style="yellow")
    if len(worse) > SHOWN:
        yield Text(f"  and {len(worse) - SHOWN} more that are worse: see the round's page", style="yellow")
    if not worse:
        few = sum(each.note.startswith("too few to say") or not each.answers for each in view.slices)
        rest = f"; {few} of them have too few answers to say" if few else ""
        yield Text(
            f"  none of {counted(len(view.slices), 'slice')} is known to be worse than the other inputs{rest}",
            style="dim",
        )

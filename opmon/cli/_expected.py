"""What is expected of rounds before their labels come, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from opmon.queries import MonitorView, RoundView


def expected_lines(view: MonitorView) -> Iterator[Text]:
    """Of the newest round that waits for labels, and how such predictions did."""
    from rich.text import Text

    for each in view.foreseen.waiting[-1:]:
        yield Text(f"  {each.expected.name} {each.expected.text} in round {each.round}, before its labels")
        yield Text(f"  {each.expected.notes[0]}", style="dim")
    if view.foreseen.said:
        lately = view.foreseen.record is not None and view.foreseen.record.lately
        yield Text(
            f"  expected {view.foreseen.quantity.name}: {view.foreseen.said}", style="yellow" if lately else "dim"
        )


def expected_of_round(view: RoundView) -> Iterator[Text]:
    """What was told of one round before its labels, with all that it stands on; or why nothing was."""
    from rich.text import Text

    if view.expected is not None:
        yield Text(f"  {view.expected.name} {view.expected.text}, told before its labels")
        yield from (Text(f"    {note}", style="dim") for note in view.expected.notes)
    elif view.not_expected:
        yield Text(f"  nothing was expected of it before its labels: {view.not_expected}", style="dim")

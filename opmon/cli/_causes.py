"""What failures have in common, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opmon.failure_words import FAILURE_WORDS, FailureWords
from opmon.wording import counted, percent

if TYPE_CHECKING:
    from rich.text import Text

    from opmon.types.grouped import FailureGroup

SHOWN = 5


def cause_lines(
    groups: Sequence[FailureGroup], most: int = SHOWN, words: FailureWords = FAILURE_WORDS["wrong"]
) -> Iterator[Text]:
    """The largest groups of failures; nothing where they have nothing in common."""
    from rich.text import Text

    named = [group for group in groups if group.kind != "rest"]
    if not named:
        return
    yield Text(f"  What its {words.noun}s have in common:")
    for group in named[:most]:
        size = counted(group.failures, f"labelled {words.noun}")
        if group.share is not None:
            size += f", {percent(group.share, 0)} of all"
            if group.low is not None and group.high is not None:
                size += f" ({percent(group.low, 0)} to {percent(group.high, 0)})"
        than = "before" if group.is_since else "elsewhere"
        sure = "" if group.lift is None else f"; {group.lift:.1f} times as often as {than}"
        over = f", {group.over}" if sure and group.over else ""
        least = "" if group.lift_at_least is None else f", at least {group.lift_at_least:.1f}"
        yield Text(f"    {group.name}: {size}{sure}{least}{over}", style="dim")
        if group.difference:
            yield Text(f"      {group.difference}", style="dim")
    if len(named) > most:
        yield Text(f"    and {counted(len(named) - most, 'smaller group')}", style="dim")

"""The terminal of the commands: as rich has it, and numbers stay with their units where its lines are broken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from opmon.binding import bound

_HELD = "\ue000"
"""What stands for a blank while lines are broken: rich breaks at every kind of blank, also at those that hold."""


class Terminal(Console):
    """A console that breaks no line between a number and its unit; what it prints has plain blanks."""

    def render_str(self, text: str, **how: Any) -> Text:
        return _held(super().render_str(text, **how))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(
            _held(renderable) if isinstance(renderable, Text) else renderable, options
        ):
            yield Segment(text.replace(_HELD, " "), style, control)


def _held(text: Text) -> Text:
    """The text, with as many characters, so that its styles stay where they are."""
    held = text.copy()
    held.plain = bound(text.plain, _HELD)
    return held

"""What a rule concluded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from opmon.types.documents import Document

VerdictState = Literal["ok", "alarm", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule concluded from the estimates. ``message`` explains it to the person who is woken up."""

    rule: str
    state: VerdictState
    message: str
    value: float | None = None
    threshold: float | None = None
    details: Document = field(default_factory=dict)
    """Evidence so far and whatever else the rule wants kept; must be representable as JSON."""

    @property
    def word(self) -> str:
        """The state in a word, as it is shown: what is advised stands for no alarm, and is not "ok" either."""
        return "advice" if self.state != "unknown" and self.details.get("advice") else self.state

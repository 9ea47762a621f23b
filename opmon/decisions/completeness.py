"""Data completeness: can what production sends be judged at all?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from opmon.abc import Rule
from opmon.decisions._judging import checked_name, checked_share
from opmon.decisions.case import OWN, Case
from opmon.errors import InputError
from opmon.types import Document, Verdict, VerdictState
from opmon.wording import counted, percent


@dataclass(frozen=True)
class Completeness(Rule):
    """Alarms when too few of the inputs could be scored, or too few of the tasks were answered.

    ``scored`` is the least share of the received inputs that the model could answer, ``answered`` the least share of
    the tasks that came back with an answer; ``patience`` is how many rounds running it takes. Both are counted, not
    estimated: there is no chance in it, and no bound to state.

    It also judges rounds that end without any estimate.
    """

    scored: float = 0.95
    """The share of inputs that must be scored."""
    answered: float = 0.5
    """The share of drawn inputs that must be answered."""
    name: str = "completeness"
    patience: int = 1
    """So many rounds one after the other must fall short."""

    counts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_share(self.scored, "scored", low=-1e-12, high=1 + 1e-12)
        checked_share(self.answered, "answered", low=-1e-12, high=1 + 1e-12)
        checked_name(self.name)
        if isinstance(self.patience, bool) or not isinstance(self.patience, int) or self.patience < 1:
            raise InputError(f"patience must be a whole number of rounds >= 1; got {self.patience!r}")

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round's counts."""
        return self._verdict(
            case.before,
            {
                "scored": case.scored / case.received if case.received else None,
                "answered": case.answered / case.asked if case.asked else None,
            },
        )

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict by the round's own counts, which were kept with the one before."""
        return self._verdict(before, details[OWN]) if OWN in details else None

    def _verdict(self, before: Document, own: Mapping[str, float | None]) -> Verdict:
        shares = {
            "scored": (own["scored"], self.scored, "inputs could be scored"),
            "answered": (own["answered"], self.answered, "tasks were answered"),
        }
        short = [
            f"only {percent(share)} of the {what}, the least is {percent(least)}"
            for share, least, what in shares.values()
            if share is not None and share < least
        ]
        running = int(before.get("rounds_short", 0)) + 1 if short else 0
        details = {"rounds_short": running, "patience": self.patience, **own, OWN: dict(own)}
        kept = [f"{percent(share)} of the {what}" for share, _, what in shares.values() if share is not None]
        message = "; ".join(short) if short else ", ".join(kept) or "nothing was counted"
        if short and running < self.patience:
            message += f"; {counted(running, 'round')} running, an alarm takes {self.patience}"
        state: VerdictState = "alarm" if running >= self.patience else "ok"
        return Verdict(self.name, state, message, own["scored"], self.scored, details)

"""Drift above a level: advice, never an alarm about the accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from opmon.abc import Rule
from opmon.decisions._judging import checked_name, checked_share
from opmon.decisions._words import line_in_words
from opmon.decisions.case import Case
from opmon.types import Verdict
from opmon.wording import percent


@dataclass(frozen=True)
class DriftLevel(Rule):
    """Advises where more than a share ``threshold`` of the columns has drifted.

    Drift is not loss: inputs may move without the model getting worse, and it may get worse while no column moves.
    This rule therefore only advises: its state is never "alarm", its events wake nobody and the model's status does not
    follow it. It holds no
    bound on false advice.
    """

    threshold: float = 0.5
    """The share of columns that may have drifted."""
    name: str = "drift-level"

    advisory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_share(self.threshold, "threshold")
        checked_name(self.name)

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round's share of drifted columns."""
        details = {"advisory": True, "advice": False}
        if case.drift is None:
            message = (
                "no share of drifted columns is known: the log has no columns of single values, the report is off "
                "(drift.enabled), or there is no earlier round to compare with yet"
            )
            return Verdict(self.name, "unknown", message, None, self.threshold, details)
        above = case.drift > self.threshold
        message = f"{percent(case.drift)} of the columns drifted, the line is {line_in_words(self.threshold)}"
        if above:
            message += "; advice only: look at the report, and at the accuracy for what it costs"
        return Verdict(self.name, "ok", message, case.drift, self.threshold, details | {"advice": above})

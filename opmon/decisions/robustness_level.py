"""Robustness below a level."""

from __future__ import annotations

from dataclasses import dataclass

from opmon.abc import Rule
from opmon.decisions._judging import checked_name, checked_share
from opmon.decisions._words import line_in_words
from opmon.decisions.case import OWN, Case, carried
from opmon.types import Document, Verdict
from opmon.wording import percent


@dataclass(frozen=True)
class RobustnessLevel(Rule):
    """Alarms when the aggregate robustness measured last lies under ``threshold``, and until it is above ``recovered``.

    The robustness comes from a run over perturbations, which is a measurement of one model version and not of a round:
    the rule compares a number with a line. ``query`` names a saved query of the monitor's ``robustness:`` section; its
    aggregate is watched instead of that of all tests. ``recovered`` (by default one point above the line) keeps it from
    flickering.
    """

    threshold: float
    """The robustness under which it alarms."""
    name: str = "robustness-level"
    recovered: float | None = None
    """From which robustness on an alarm ends; one point above the threshold where it is not given."""
    query: str | None = None
    """The saved query to look at; all tests together where none is named."""

    def __post_init__(self) -> None:
        checked_share(self.threshold, "threshold")
        checked_name(self.name)
        if self.query is not None:
            checked_name(self.query)
        if self.recovered is not None:
            checked_share(self.recovered, "recovered", low=self.threshold - 1e-12, high=1 + 1e-12)

    def watched_robustness(self) -> str:
        """The query whose robustness is watched, or ``""`` for that of all tests."""
        return self.query or ""

    def judge(self, case: Case) -> Verdict:
        """The verdict on the robustness known at this round."""
        if case.robustness is None:
            message = "no robustness was measured yet for this model version"
            return Verdict(self.name, "unknown", message, None, self.threshold, carried(case.before))
        return self._verdict(case.before, case.robustness)

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict by the robustness known at the round, which was kept with the one before."""
        return self._verdict(before, details[OWN]) if OWN in details else None

    def _verdict(self, before: Document, robustness: float) -> Verdict:
        line = min(self.threshold + 0.01, 1.0) if self.recovered is None else self.recovered
        alarmed = robustness < (line if before.get("alarmed") else self.threshold)
        what = "robustness" if self.query is None else f"robustness to {self.query!r}"
        message = f"{what} {percent(robustness)}, the line is {line_in_words(self.threshold)}"
        if alarmed and robustness >= self.threshold:
            message += f"; the alarm ends at {percent(line)}"
        details = {"alarmed": alarmed, "distance": robustness - self.threshold, OWN: robustness}
        return Verdict(self.name, "alarm" if alarmed else "ok", message, robustness, self.threshold, details)

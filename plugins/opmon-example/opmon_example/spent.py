"""The rule ``labels_spent``: advice once a model version has cost more labels than were meant for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from opmon.abc import Rule
from opmon.decisions.case import Case
from opmon.types import Verdict


@dataclass(frozen=True)
class LabelsSpent(Rule):
    """Advises once the labels of a model version are more than ``most``.

    What it promises: labels are counted, not estimated, so there is no chance in it. A label that comes late is counted
    in the round that asked for it.
    """

    most: int
    name: str = "labels-spent"

    advisory: ClassVar[bool] = True
    counts: ClassVar[bool] = True

    def judge(self, case: Case) -> Verdict:
        return self._verdict(case.before, case.answered)

    def restate(self, before: Mapping[str, Any], details: Mapping[str, Any]) -> Verdict:
        return self._verdict(before, details["own"])

    def _verdict(self, before: Mapping[str, Any], own: int) -> Verdict:
        spent = before.get("spent", 0) + own
        message = f"{spent:,} labels so far, {self.most:,} were meant"
        details = {"own": own, "spent": spent, "advice": spent > self.most}
        return Verdict(self.name, "ok", message, float(spent), float(self.most), details)

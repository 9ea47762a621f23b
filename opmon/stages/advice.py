"""What rules that only advise have said, as it is told: as advice, whatever they call it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opmon.config import MonitorSettings
from opmon.types import Verdict


def as_told(settings: MonitorSettings, found: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts, with the alarms of rules that only advise marked as advice: nothing is done about them."""
    advising = {rule.name for rule in settings.rules if not rule.acts}
    return [
        replace(verdict, details={**verdict.details, "advice": True})
        if verdict.state == "alarm" and verdict.rule in advising
        else verdict
        for verdict in found
    ]

"""One step of a sequential rule: from what a round adds to the evidence so far, and to a verdict in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from opmon.decisions._betting import log_growth, recovery_growth, same_growth
from opmon.decisions._bound import Bound
from opmon.decisions._watch import Growth, Watch
from opmon.decisions._words import labels_to_go, share_of_line
from opmon.decisions.draw_values import DrawValues
from opmon.types import Document, Json, VerdictState
from opmon.wording import percent


@dataclass(frozen=True)
class Step:
    """The evidence after one round, and what the round added to it."""

    watch: Watch
    was_alarmed: bool
    growth: Growth
    details: dict[str, Json] = field(default_factory=dict)

    @property
    def state(self) -> VerdictState:
        return "alarm" if self.watch.alarmed else "ok"

    def words(self, hypothesis: str, recovery: float) -> str:
        """The evidence, how far it is from the line, and what would change it."""
        wrongly = f"which a model that has not recovered ever reaches with probability {percent(1 / recovery)} at most"
        if self.watch.alarmed and not self.was_alarmed:
            return f"the evidence against {hypothesis} is {share_of_line(self.watch.evidence)}: alarm"
        if self.watch.alarmed:
            return (
                f"the alarm of an earlier round holds: the evidence of recovery is "
                f"{share_of_line(self.watch.recovery, 'ending it')}, {wrongly}"
            )
        if self.was_alarmed:
            return (
                f"recovered: the evidence for {hypothesis} since the alarm is what ending it takes, {wrongly}; the "
                f"watch begins anew"
            )
        text = f"the evidence against {hypothesis} is {share_of_line(self.watch.evidence)}"
        more = labels_to_go(self.watch.capital, self.growth.alarm.tolist(), self.growth.labels)
        if more is None:
            return f"{text}; rounds like this one do not raise it"
        return f"{text}; about {more:,} more labels like these would make an alarm, good ones lower it"


def weigh(drawn: DrawValues, line: float) -> Growth:
    """The growth of the evidence about the level ``line`` of the mean loss by the draws of a round."""
    room = None if drawn.highest is None else drawn.highest - line
    back = recovery_growth(drawn.values - line, drawn.stakes, room)
    return Growth(log_growth(drawn, line), back, len(drawn))


def weigh_alike(drawn: DrawValues, line: float) -> Growth:
    """The same for a round that is one of several whose mean is held against the line."""
    return Growth(*same_growth(drawn, line), len(drawn))


def advance(
    growth: Growth,
    before: Document,
    setting: Document,
    bound: Bound,
    elapsed: timedelta | None,
    recovery: float,
) -> Step:
    """The evidence after one more round."""
    watch = Watch.of(before, setting)
    now = watch.after(growth, bound, elapsed, recovery)
    details: dict[str, Json] = {
        "evidence": now.evidence,
        "needed": 1.0,
        "bound": bound.words(elapsed),
        "rounds_judged": now.judged,
        "setting": dict(setting),
        "watch": now.kept(),
    }
    if now.alarmed:
        details["recovery"] = now.recovery
    return Step(now, watch.alarmed, growth, details)

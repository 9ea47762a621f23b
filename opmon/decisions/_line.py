"""The plain rule on a line: it looks at estimates alone, of whatever quantity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypedDict

import numpy as np

from opmon.abc import Rule
from opmon.decisions._own import estimate_kept, kept_estimate, kept_time, time_kept
from opmon.decisions._words import in_words
from opmon.decisions.case import OWN, Case, carried
from opmon.errors import InputError
from opmon.types import Document, Estimate, Verdict, VerdictState
from opmon.wording import counted, exactly


class _Running(TypedDict):
    """How many rounds running were beyond the line and how many were not, and whether the alarm is on."""

    rounds_below: int
    rounds_not_below: int
    alarmed: bool


@dataclass(frozen=True)
class OnLine(Rule):
    """Alarms when ``patience`` rounds running lie beyond the line: on the side of it that is worse."""

    threshold: float
    """The line, in the unit of what is watched."""
    name: str = "line"
    certainty: Literal["interval", "estimate"] = "interval"
    """``interval``: a round counts when its whole interval is beyond the line; ``estimate``: when the estimate is."""
    patience: int = 1
    """So many rounds one after the other must be beyond it."""
    recovery: int = 1
    """So many rounds running that do not count end an alarm."""

    def __post_init__(self) -> None:
        if not isinstance(self.threshold, int | float) or isinstance(self.threshold, bool):
            raise InputError(f"threshold must be a number such as 0.92; got {self.threshold!r}")
        if not math.isfinite(self.threshold):
            raise InputError(f"threshold must be a finite number; got {self.threshold}")
        if self.certainty not in ("interval", "estimate"):
            raise InputError(f"certainty must be 'interval' or 'estimate'; got {self.certainty!r}")
        if isinstance(self.patience, bool) or not isinstance(self.patience, int) or self.patience < 1:
            raise InputError(f"patience must be a whole number of rounds >= 1; got {self.patience!r}")
        if isinstance(self.recovery, bool) or not isinstance(self.recovery, int) or self.recovery < 1:
            raise InputError(f"recovery must be a whole number of rounds >= 1; got {self.recovery!r}")
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"name must be text, such as 'accuracy-floor'; got {self.name!r}")

    def decide(self, estimates: Sequence[Estimate]) -> Verdict:
        """The verdict on the last round, given the rounds of one model version, oldest first."""
        if not estimates or estimates[-1].n < 1:
            return self._nothing(bool(estimates), "", {})
        before: Document = {}
        for estimate in estimates[:-1]:
            before = self._after(before, estimate)
        return self._verdict(before, estimates[-1], None)

    def line(self) -> float:
        return self.threshold

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round, with how often this rule alarms for nothing in a year of such rounds."""
        if case.estimate is None or case.estimate.n < 1:
            return self._nothing(case.estimate is not None, case.why, case.before)
        return self._verdict(case.before, case.estimate, case.elapsed)

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict by the round's own estimate, which was kept with the one before."""
        own = details.get(OWN)
        return None if own is None else self._verdict(before, kept_estimate(own), kept_time(own))

    def _nothing(self, any_round: bool, why: str, before: Document) -> Verdict:
        message = why or ("the last round has no answers yet" if any_round else "no round has an estimate yet")
        message += f"; nothing is known about the line {exactly(self.threshold)}"
        return Verdict(self.name, "unknown", message, threshold=self.threshold, details=carried(before))

    def _after(self, before: Document, estimate: Estimate) -> _Running:
        """The state after a round: alarmed from ``patience`` rounds beyond the line until ``recovery`` others."""
        below, others = (before.get(key, 0) for key in ("rounds_below", "rounds_not_below"))
        below, others = (below + 1, 0) if self._beyond(estimate) else (0, others + 1)
        alarmed = below >= self.patience or (bool(before.get("alarmed")) and others < self.recovery)
        return {"rounds_below": below, "rounds_not_below": others, "alarmed": alarmed}

    def _verdict(self, before: Document, last: Estimate, elapsed: timedelta | None) -> Verdict:
        now = self._after(before, last)
        message = self._message(last, now["rounds_below"], held=now["alarmed"] and now["rounds_below"] < self.patience)
        details = {
            **now,
            "low": last.low,
            "high": last.high,
            "level": last.level,
            "n": last.n,
            "distance": (abs(last.value) if last.quantity.better == "zero" else last.value) - self.threshold,
            "certainty": self.certainty,
            "patience": self.patience,
            OWN: estimate_kept(last) | time_kept(elapsed),
        }
        if elapsed is not None and elapsed > timedelta():
            rounds = max(1, round(timedelta(days=365.25) / elapsed))
            chance = false_alarm((1 - last.level) / 2 if self.certainty == "interval" else 0.5, rounds, self.patience)
            message += (
                f"; no bound is kept: a model exactly at the line alarms within a year with probability {chance:.2g}"
            )
            details |= {"false_alarm_in_a_year": chance, "rounds_in_a_year": rounds}
        state: VerdictState = "alarm" if now["alarmed"] else "ok"
        return Verdict(self.name, state, message, last.value, self.threshold, details)

    def _beyond(self, estimate: Estimate) -> bool:
        """Whether a round lies on the worse side of the line."""
        badness = estimate.quantity.badness
        return badness(self._decides(estimate)) > badness(self.threshold) and estimate.n > 0

    def _decides(self, estimate: Estimate) -> float:
        """The number that is held against the line: the end of the interval that is better, or the estimate."""
        if self.certainty == "estimate":
            return estimate.value
        match estimate.quantity.better:
            case "higher":
                return estimate.high
            case "zero":
                return max(estimate.low, 0.0) or min(estimate.high, 0.0)
            case _:
                return estimate.low

    def _message(self, last: Estimate, running: int, *, held: bool) -> str:
        quantity, decides = last.quantity, self._decides(last)
        what = _ENDS[quantity.better] if self.certainty == "interval" else "the estimate"
        line = self.threshold if quantity.better != "zero" else math.copysign(self.threshold, decides)
        distance = decides - line
        digits = quantity.digits(last.low, last.high)
        far, side = quantity.difference(distance, digits), "below" if distance < 0 else "above"
        where = "on the line" if far == quantity.difference(0.0, digits) else f"{far} {side} the line"
        text = f"{in_words(last)}; {what} is {where} of {quantity.exactly(line)}"
        if held:
            worse = _WORSE[quantity.better]
            return f"{text}; the alarm ends after {_running_that(self.recovery)} not {worse}"
        if running == 0:
            return f"{text}{self._doubt(last)}"
        rounds = f"{counted(running, 'round')} running"
        return f"{text}, {rounds}" + ("" if running >= self.patience else f"; an alarm takes {self.patience}")

    def _doubt(self, last: Estimate) -> str:
        if self.certainty == "estimate":
            return ""
        badness, worse = last.quantity.badness, _WORSE[last.quantity.better]
        line = badness(self.threshold)
        if badness(last.value) > line:
            return f": the estimate is {worse} the line, but more labels are needed to be sure"
        return ": the interval still holds the line" if max(map(badness, (last.low, last.high))) > line else ""


def _running_that(rounds: int) -> str:
    """So many rounds, each of which is something, in words."""
    return "one round that is" if rounds == 1 else f"{rounds:,} rounds running that are"


_ENDS = {
    "higher": "the interval's upper end",
    "lower": "the interval's lower end",
    "zero": "the interval's end nearest 0",
    "neither": "the interval's lower end",
}
_WORSE = {"higher": "below", "lower": "above", "zero": "beyond", "neither": "above"}


_LONGEST = 64
"""Up to this patience the probability is computed exactly; beyond it even ``q = 1/2`` leaves 1e-19 a round at most."""


def false_alarm(q: float, rounds: int, patience: int) -> float:
    """The probability that ``patience`` of ``rounds`` independent rounds running, each with probability ``q``, alarm.

    A power of the chain of how many rounds running there are now, with the alarm as its end: exact, and as quick for a
    million rounds as for ten. Beyond 64 rounds of patience the sum over where such a run may begin stands for it.

    >>> round(false_alarm(0.025, 168, 1), 2), round(false_alarm(0.025, 8760, 3), 2)
    (0.99, 0.12)
    """
    if patience > _LONGEST:
        return min(max(rounds - patience + 1, 0) * q**patience, 1.0)
    chain = np.diag(np.full(patience, q), k=1)
    chain[:-1, 0] += 1 - q
    chain[-1, -1] = 1.0
    return float(min(np.linalg.matrix_power(chain, rounds)[0, -1], 1.0))

"""The plain level rule: is the accuracy under a line?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal, TypedDict

import numpy as np

from opmon.abc import Rule
from opmon.decisions._own import estimate_kept, kept_estimate, kept_time, time_kept
from opmon.decisions._words import in_words
from opmon.decisions.case import OWN, Case, carried
from opmon.errors import InputError
from opmon.problems import SHARES
from opmon.types import Document, Estimate, Problem, Verdict, VerdictState
from opmon.wording import percent, points


class _Running(TypedDict):
    """How many rounds running were below the line and how many were not, and whether the alarm is on."""

    rounds_below: int
    rounds_not_below: int
    alarmed: bool


@dataclass(frozen=True)
class AccuracyBelow(Rule):
    r"""Alarms when the accuracy of ``patience`` rounds running lies under ``threshold``.

    With ``certainty="interval"`` a round counts when the upper end of its interval lies under the line,
    :math:`\hat\xi_{high} < t`; with ``"estimate"`` when the estimate itself does, :math:`\hat\xi < t`.

    The estimate is the plain one, not the one corrected for annotators who err that may stand beside it: a rule must
    not change what it means with the round in which enough second opinions have come in.

    **False alarms.** This rule repeats a fixed-level decision every round and holds no bound over its life. For
    independent rounds of a model whose accuracy is exactly at the line, a two-sided interval of level :math:`c` lies
    under it with probability :math:`q = (1-c)/2` at most (where the interval covers). The probability of any false
    alarm in :math:`R` rounds is then :math:`1-(1-q)^R` for patience 1 and at most :math:`(R-k+1)\,q^k` for patience
    :math:`k`. Computed exactly at :math:`c = 0.95`:

    ============  ======  =======  =================
    patience        R=24    R=168    R=8760 (hourly,
                   1 day   1 week    a year)
    ============  ======  =======  =================
    1               0.46     0.99                  1
    2              0.014      0.1              0.995
    3             0.0003   0.0026               0.12
    ============  ======  =======  =================

    A model well above the line alarms far less often: the line of the table is the worst case of a healthy one. With
    ``certainty="estimate"`` :math:`q` is about one half: only for accuracies known almost exactly. An alarm ends with
    ``recovery`` rounds running that do not count, which is no evidence that the model has recovered.

    >>> from opmon.types import Estimate
    >>> low = Estimate(value=0.85, low=0.80, high=0.90, n=200, frame_size=5000, response=1.0, method="srs wilson")
    >>> AccuracyBelow(threshold=0.92).decide([low]).state
    'alarm'
    """

    threshold: float
    """The accuracy below which it alarms."""
    name: str = "accuracy-below"
    certainty: Literal["interval", "estimate"] = "interval"
    """``interval``: a round counts when its whole interval lies below; ``estimate``: when the estimate does."""
    patience: int = 1
    """So many rounds one after the other must be below."""
    recovery: int = 1
    """So many rounds running that do not count end an alarm."""

    problems: ClassVar[tuple[Problem, ...]] = SHARES

    def __post_init__(self) -> None:
        if not isinstance(self.threshold, int | float) or isinstance(self.threshold, bool):
            raise InputError(f"threshold must be a number such as 0.92; got {self.threshold!r}")
        if not math.isfinite(self.threshold) or self.threshold > 1:
            hint = f" (did you mean {self.threshold / 100:g}?)" if 1 < self.threshold <= 100 else ""
            raise InputError(f"threshold must be a number of at most 1, as the accuracy is; got {self.threshold}{hint}")
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
            return self._nothing(bool(estimates), {})
        before: Document = {}
        for estimate in estimates[:-1]:
            before = self._after(before, estimate)
        return self._verdict(before, estimates[-1], None)

    def line(self) -> float:
        return self.threshold

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round, with how often this rule alarms for nothing in a year of such rounds."""
        if case.estimate is None or case.estimate.n < 1:
            return self._nothing(case.estimate is not None, case.before)
        return self._verdict(case.before, case.estimate, case.elapsed)

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict by the round's own estimate, which was kept with the one before."""
        own = details.get(OWN)
        return None if own is None else self._verdict(before, kept_estimate(own), kept_time(own))

    def _nothing(self, any_round: bool, before: Document) -> Verdict:
        message = "the last round has no answers yet" if any_round else "no round has an estimate yet"
        message += f"; nothing is known about the line {self.threshold:g}"
        return Verdict(self.name, "unknown", message, threshold=self.threshold, details=carried(before))

    def _after(self, before: Document, estimate: Estimate) -> _Running:
        """The state after a round: alarmed from ``patience`` rounds below running until ``recovery`` others running."""
        below, others = (before.get(key, 0) for key in ("rounds_below", "rounds_not_below"))
        below, others = (below + 1, 0) if self._below(estimate) else (0, others + 1)
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
            "distance": last.value - self.threshold,
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

    def _below(self, estimate: Estimate) -> bool:
        return self._evidence(estimate) < self.threshold and estimate.n > 0

    def _evidence(self, estimate: Estimate) -> float:
        return estimate.high if self.certainty == "interval" else estimate.value

    def _message(self, last: Estimate, running: int, *, held: bool) -> str:
        text = in_words(last)
        what = "the interval's upper end" if self.certainty == "interval" else "the estimate"
        distance = self._evidence(last) - self.threshold
        side = "below" if distance < 0 else "above" if distance > 0 else "away from"
        text += f"; {what} is {points(distance)} {side} the line of {percent(self.threshold)}"
        if held:
            return f"{text}; the alarm ends after {self.recovery} rounds running that are not below"
        if running == 0:
            return f"{text}{self._doubt(last)}"
        rounds = f"{running} round{'s' if running > 1 else ''} running"
        return f"{text}, {rounds}" + ("" if running >= self.patience else f"; an alarm takes {self.patience}")

    def _doubt(self, last: Estimate) -> str:
        if self.certainty == "interval" and last.value < self.threshold:
            return ": the estimate is below the line, but more labels are needed to be sure"
        if self.certainty == "interval" and last.low < self.threshold:
            return ": the interval still holds the line"
        return ""


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

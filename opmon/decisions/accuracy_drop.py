"""The drop rule: has the accuracy fallen by more than so much from where it was?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

from opmon.decisions._bound import Bound
from opmon.decisions._judging import checked_name, checked_patience, checked_share, unanswered, verdict
from opmon.decisions._sequential import step
from opmon.decisions.case import Case
from opmon.decisions.draw_values import draw_values
from opmon.errors import InputError
from opmon.types import Estimate, Problem, Verdict
from opmon.wording import percent, points


@dataclass(frozen=True)
class AccuracyDrop:
    r"""Alarms when the accuracy has dropped by more than ``drop`` from the baseline.

    The baseline is ``baseline``, an accuracy known beforehand (of a large test set); or ``period``, the first and last
    number of rounds of the model version in the past; or else the first ``rounds`` rounds of the model version that the
    rule judges: a new version behind the alias begins a baseline of its own.

    An estimated baseline :math:`b` has an error of its own. Its lower bound :math:`\underline{b}` at confidence
    :math:`1 - \alpha/2` stands for it, and the level rule watches the line :math:`\underline{b} - d` with the other
    :math:`\alpha/2`; together they keep :math:`\alpha`. The bound of the baseline pools the rounds' intervals,
    :math:`\underline{b} = \hat b - \frac{z_{1-\alpha/2}}{z_c}\sqrt{\sum W_r^2 (\hat\xi_r - low_r)^2}`, and is
    asymptotic; all that follows is exact. With ``false_alarms`` the baseline's bound has confidence 97.5 %, and the
    rate holds given that it covers.

    A wide baseline makes a low line: more ``rounds`` bring it nearer.
    """

    drop: float
    name: str = "accuracy-drop"
    baseline: float | None = None
    period: tuple[int, int] | None = None
    rounds: int = 3
    alpha: float | None = None
    false_alarms: str | None = None
    recovery: float = 20.0

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)

    def __post_init__(self) -> None:
        checked_share(self.drop, "drop")
        checked_name(self.name)
        checked_patience(self.recovery)
        if self.baseline is not None:
            checked_share(self.baseline, "baseline", high=1.0 + 1e-12)
            if self.baseline - self.drop <= 0:
                raise InputError(f"drop must be smaller than the baseline, {self.baseline:g}; got {self.drop:g}")
        if self.period is not None and (self.baseline is not None or not 1 <= self.period[0] <= self.period[1]):
            raise InputError(
                f"period must be two numbers of rounds such as [10, 40], without baseline; got {self.period}"
            )
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 1:
            raise InputError(f"rounds must be a whole number >= 1; got {self.rounds!r}")
        Bound.of(self.alpha, self.false_alarms)

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round; «unknown» while the baseline is being taken."""
        if case.sample is None or case.estimate is None or not case.sample.answered.any():
            return unanswered(self.name, case, None)
        bound = Bound.of(self.alpha, self.false_alarms)
        known = self._baseline(case, bound)
        if "line" not in known:
            return self._taking(case, known)
        line = 1 - float(known["line"])
        setting = {"drop": self.drop, "line": known["line"], "bound": bound.words()}
        left = bound if self.baseline is not None else bound.halved()
        drawn = draw_values(case.sample, case.coefficients)
        taken = step(drawn, line, case.before, setting, left, case.elapsed, self.recovery)
        taken.details["baseline"] = known
        taken.details["bound"] = bound.words(case.elapsed)
        intro = f"the baseline is {percent(known['value'])}"
        if self.baseline is None:
            intro += f" ({percent(known['low'])} at least, from {known['rounds']} rounds)"
        intro += f", the line {points(self.drop)} below it {percent(known['line'])}; "
        hypothesis = f"a drop of {points(self.drop)} or less"
        return verdict(self.name, taken, case.estimate, known["line"], hypothesis, self.recovery, intro)

    def _baseline(self, case: Case, bound: Bound) -> dict[str, Any]:
        """What the drop is measured from; without ``line`` while it is being taken. Never changed afterwards."""
        if self.baseline is not None:
            return {"value": self.baseline, "low": self.baseline, "line": self.baseline - self.drop}
        kept = case.before.get("baseline")
        asked: dict[str, Any] = {"drop": self.drop, "asked": list(self.period) if self.period else self.rounds}
        if isinstance(kept, Mapping) and "line" in kept and all(kept.get(key) == asked[key] for key in asked):
            return dict(kept)
        if self.period is not None:
            first, last = self.period
            pairs = zip(case.numbers, case.estimates, strict=True)
            past = [_kept(estimate) for number, estimate in pairs if first <= number <= last]
            return _pooled(past, self.drop, bound) | asked if past and case.number > last else asked
        taken = case.before.get("taken")
        before = list(taken) if isinstance(taken, list) else []
        if before and len(before) >= self.rounds:
            return _pooled(before[: self.rounds], self.drop, bound) | asked
        return asked

    def _taking(self, case: Case, known: dict[str, Any]) -> Verdict:
        estimate = case.estimates[-1]
        before = case.before.get("taken")
        taken = [*(before if isinstance(before, list) else []), _kept(estimate)]
        message = f"taking the baseline: round {len(taken)} of {self.rounds}, {percent(estimate.value)} so far"
        if self.period is not None:
            taken = []
            message = (
                f"the baseline is that of rounds {self.period[0]} to {self.period[1]}, which are not all there yet"
            )
        return Verdict(self.name, "unknown", message, estimate.value, None, {"taken": taken, "baseline": known})


def _kept(estimate: Estimate) -> dict[str, float]:
    z = NormalDist().inv_cdf((1 + estimate.level) / 2)
    return {
        "value": estimate.value,
        "error": (estimate.value - estimate.low) / z,
        "frame_size": float(estimate.frame_size),
    }


def _pooled(taken: Sequence[Mapping[str, float]], drop: float, bound: Bound) -> dict[str, Any]:
    N = math.fsum(entry["frame_size"] for entry in taken)
    value = math.fsum(entry["value"] * entry["frame_size"] / N for entry in taken)
    error = math.sqrt(math.fsum((entry["error"] * entry["frame_size"] / N) ** 2 for entry in taken))
    share = 0.025 if bound.alpha is None else bound.alpha / 2
    low = value - NormalDist().inv_cdf(1 - share) * error
    return {"value": value, "low": low, "rounds": len(taken), "line": max(low - drop, 1e-6)}

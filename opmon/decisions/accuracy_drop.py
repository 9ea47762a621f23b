"""The drop rule: has the accuracy fallen by more than so much from where it was?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

from opmon.abc import USUAL, Rule
from opmon.decisions._bound import Bound
from opmon.decisions._judging import checked_name, checked_recovery, checked_share, unanswered, verdict
from opmon.decisions._own import Own
from opmon.decisions._sequential import advance, weigh
from opmon.decisions.case import Case
from opmon.decisions.draw_values import draw_values
from opmon.errors import InputError
from opmon.problems import SHARES
from opmon.types import Document, Estimate, Json, Problem, Verdict
from opmon.wording import counted, exactly, percent, points


@dataclass(frozen=True)
class AccuracyDrop(Rule):
    r"""Alarms when the accuracy has dropped by more than ``drop`` from the baseline.

    The baseline is ``baseline``, an accuracy known beforehand (of a large test set); or ``period``, the first and last
    number of rounds of the model version in the past; or else the first ``rounds`` rounds of the model version: a new
    version behind the alias begins a baseline of its own. Once taken it stays.

    **What it promises** is about *every* round, as with ``accuracy_level``: while no round lies more than ``drop``
    below the accuracy that the model had in its baseline, a false alarm has probability ``alpha`` at most.

    An estimated baseline :math:`b` has an error of its own. Its lower bound :math:`\underline{b}` at confidence
    :math:`1 - \alpha/2` stands for it, and the level rule watches the line :math:`\underline{b} - d` with the other
    :math:`\alpha/2`; together they keep :math:`\alpha`. The bound of the baseline pools the rounds,
    :math:`\underline{b} = \hat b - z_{1-\alpha/2}\sqrt{\sum W_r^2 s_r^2}` with
    :math:`s_r^2 = (\hat\xi_r - low_r)^2/z_c^2 + \tilde\theta_r(1-\tilde\theta_r)/N_r`: the interval tells how far the
    estimate is from the accuracy of the round's own inputs, the second term how far those may be from the inputs to
    come; a round labelled whole is not the whole truth. It is asymptotic; all that follows is exact. With
    ``false_alarms`` the baseline's bound has confidence 97.5 %, and the rate holds given that it covers.

    A wide baseline makes a low line: more ``rounds`` bring it nearer.

    As with ``accuracy_level``, answers are taken for truth, and not corrected for annotators who err.
    """

    drop: float
    """How much less accurate than its baseline the model may become, as a share: 0.03 is three points."""
    name: str = "accuracy-drop"
    baseline: float | None = None
    """An accuracy known beforehand."""
    period: tuple[int, int] | None = None
    """The first and the last number of the past rounds that make the baseline."""
    rounds: int = 3
    """So many first rounds of a version make the baseline, where nothing else does."""
    alpha: float | None = None
    """The probability of any false alarm in the life of a model version; 0.05 where ``false_alarms`` is not given."""
    false_alarms: str | None = None
    """Instead of ``alpha``: the mean rate of false alarms, such as ``1 per year``."""
    recovery: float = 20.0
    """How much evidence ends an alarm: one that should go on is ended with probability 1/recovery at most."""

    problems: ClassVar[tuple[Problem, ...]] = SHARES
    bets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_share(self.drop, "drop")
        checked_name(self.name)
        checked_recovery(self.recovery)
        if self.baseline is not None:
            checked_share(self.baseline, "baseline", high=1.0 + 1e-12)
            if self.baseline - self.drop <= 0:
                raise InputError(
                    f"drop must be smaller than the baseline, {exactly(self.baseline)}; got {exactly(self.drop)}"
                )
        if self.period is not None and (self.baseline is not None or not 1 <= self.period[0] <= self.period[1]):
            raise InputError(
                f"period must be two numbers of rounds such as [10, 40], without baseline; got {self.period}"
            )
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 1:
            raise InputError(f"rounds must be a whole number >= 1; got {self.rounds!r}")
        Bound.of(self.alpha, self.false_alarms)

    def watches(self) -> str:
        return USUAL

    def looks_back(self, before: Document) -> int | None:
        """All the rounds until the baseline is taken, and then none but the one to judge."""
        return 1 if self.baseline is not None or self._taken(before) is not None else None

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round; "unknown" while the baseline is being taken."""
        if case.sample is None or case.estimate is None or not case.sample.answered.any():
            return unanswered(self.name, case, None)
        baseline = self._baseline(case)
        if "line" not in baseline:
            return self._taking(case)
        growth = weigh(draw_values(case.sample, case.design), 1 - float(baseline["line"]))
        return self._verdict(case.before, Own(growth, case.estimate, case.elapsed), baseline)

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict by the round's own evidence, with the baseline that was taken for it."""
        own = Own.of(details)
        return None if own is None else self._verdict(before, own, details["baseline"])

    def _verdict(self, before: Document, own: Own, baseline: Document) -> Verdict:
        bound = Bound.of(self.alpha, self.false_alarms)
        setting = {"drop": self.drop, "line": baseline["line"], "bound": bound.words()}
        left = bound if self.baseline is not None else bound.halved()
        taken = advance(own.growth, before, setting, left, own.elapsed, self.recovery)
        taken.details["baseline"] = dict(baseline)
        taken.details["bound"] = bound.words(own.elapsed)
        intro = f"the baseline is {percent(baseline['value'])}"
        if self.baseline is None:
            intro += f" ({percent(baseline['low'])} at least, from {counted(baseline['rounds'], 'round')})"
        intro += f", the line {points(self.drop)} below it {percent(baseline['line'])}; "
        hypothesis = f"a drop of {points(self.drop)} or less"
        return verdict(self.name, taken, own, baseline["line"], hypothesis, self.recovery, intro)

    def _baseline(self, case: Case) -> Document:
        """The baseline that the drop is measured from; without ``line`` while it is being taken, and then fixed."""
        if self.baseline is not None:
            return {"value": self.baseline, "low": self.baseline, "line": self.baseline - self.drop}
        taken = self._taken(case.before)
        if taken is not None:
            return dict(taken)
        past = self._past(case)
        complete = case.number > self.period[1] if self.period is not None else len(past) == self.rounds
        if not past or not complete:
            return {}
        bound = Bound.of(self.alpha, self.false_alarms)
        return _pooled([_kept(estimate) for estimate in past], self.drop, bound) | self._asked()

    def _taken(self, before: Document) -> Document | None:
        """The baseline that was taken before, where it is of the rounds that are asked for now."""
        kept, asked = before.get("baseline"), self._asked()
        fits = isinstance(kept, Mapping) and "line" in kept and all(kept.get(key) == asked[key] for key in asked)
        return kept if fits else None

    def _asked(self) -> dict[str, Json]:
        return {"drop": self.drop, "asked": list(self.period) if self.period else self.rounds}

    def _past(self, case: Case) -> Sequence[Estimate]:
        """The rounds before this one that make the baseline."""
        if self.period is None:
            return case.estimates[:-1][: self.rounds]
        first, last = self.period
        pairs = zip(case.numbers, case.estimates, strict=True)
        return [estimate for number, estimate in pairs if first <= number <= last]

    def _taking(self, case: Case) -> Verdict:
        estimate = case.estimates[-1]
        taken = [] if self.period is not None else [_kept(past) for past in case.estimates]
        message = f"taking the baseline: round {len(taken)} of {self.rounds}, {percent(estimate.value)} so far"
        if self.period is not None:
            message = (
                f"the baseline is that of rounds {self.period[0]} to {self.period[1]}, which are not all there yet"
            )
        return Verdict(self.name, "unknown", message, estimate.value, None, {"taken": taken})


def _kept(estimate: Estimate) -> dict[str, float]:
    """A round's value, and its error as a statement about the inputs to come: no discount for a finite frame."""
    z = NormalDist().inv_cdf((1 + estimate.level) / 2)
    loss = (estimate.n * (1 - estimate.value) + 1) / (estimate.n + 2)  # never quite 0 or 1
    between = abs(loss * (1 - loss)) / estimate.frame_size
    return {
        "value": estimate.value,
        "error": math.hypot((estimate.value - estimate.low) / z, math.sqrt(between)),
        "frame_size": float(estimate.frame_size),
    }


def _pooled(taken: Sequence[Mapping[str, float]], drop: float, bound: Bound) -> dict[str, Json]:
    N = math.fsum(entry["frame_size"] for entry in taken)
    value = math.fsum(entry["value"] * entry["frame_size"] / N for entry in taken)
    error = math.sqrt(math.fsum((entry["error"] * entry["frame_size"] / N) ** 2 for entry in taken))
    share = 0.025 if bound.alpha is None else bound.alpha / 2
    low = value - NormalDist().inv_cdf(1 - share) * error
    return {"value": value, "low": low, "rounds": len(taken), "line": max(low - drop, 1e-6)}

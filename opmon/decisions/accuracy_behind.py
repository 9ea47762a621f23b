"""Champion against challenger: is another version of the model better on the same inputs?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.decisions._bound import Bound
from opmon.decisions._judging import checked_name, checked_patience, unanswered
from opmon.decisions._paired import paired_growth
from opmon.decisions._sequential import advance
from opmon.decisions.case import Case
from opmon.errors import InputError
from opmon.types import Problem, Verdict
from opmon.wording import points


@dataclass(frozen=True)
class AccuracyBehind:
    r"""Alarms when the watched model is less accurate than ``rival`` by more than ``margin`` on the same inputs.

    ``rival`` is the address of another version, ``models:/digits/4`` or ``models:/digits@challenger``; it answers the
    inputs that were drawn for the watched model, so a comparison costs no further label.

    Hypothesis: the frame's mean of :math:`u_i = y_i - y'_i - d`, loss less the rival's loss less the margin, is at most
    0. Inputs on which both are right or both are wrong tell nothing and cost nothing, which is why a paired comparison
    needs a fraction of the labels of two samples. Evidence and bound are those of the level rule. Bets stay below
    :math:`1/(w(1 + d))` where ``w`` is the largest weight of a draw.
    """

    rival: str
    margin: float = 0.0
    name: str = "accuracy-behind"
    alpha: float | None = None
    false_alarms: str | None = None
    recovery: float = 20.0

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)

    def __post_init__(self) -> None:
        checked_name(self.name)
        checked_patience(self.recovery)
        if not isinstance(self.rival, str) or not self.rival.startswith("models:/"):
            raise InputError(
                f"rival must be the address of a model, such as models:/digits@challenger; got {self.rival!r}"
            )
        if isinstance(self.margin, bool) or not isinstance(self.margin, int | float) or not 0 <= self.margin < 1:
            raise InputError(f"margin must lie in 0..1, such as 0.01; got {self.margin!r}")
        Bound.of(self.alpha, self.false_alarms)

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round."""
        if case.sample is None or case.estimate is None or not case.sample.answered.any():
            return unanswered(self.name, case, None)
        if case.rival is None:
            message = f"{self.rival} is this version, or has not answered its inputs; nothing to compare"
            return Verdict(self.name, "unknown", message, details=dict(case.before))
        losses, bound = case.sample.outcomes, Bound.of(self.alpha, self.false_alarms)
        paired = paired_growth(case.sample, losses - case.rival, self.margin, case.coefficients)
        if paired is None:
            message = "a draw weighs more than bets allow for: set defensive of the sampler to 0.1"
            return Verdict(self.name, "unknown", message, details=dict(case.before))
        growth, surplus, stakes, disagree = paired
        setting = {"rival": self.rival, "margin": self.margin, "bound": bound.words()}
        taken = advance(growth, surplus, stakes, case.before, setting, bound, case.elapsed, self.recovery)
        ahead = float(stakes @ (surplus + self.margin) / stakes.sum())
        side = "ahead of" if ahead > 0 else "behind"
        hypothesis = f"«{self.rival} is at most {points(self.margin)} better»"
        message = (
            f"{self.rival} is {points(ahead)} {side} the watched version in this round, told apart by "
            f"{disagree:,} of {len(surplus):,} draws; {taken.words(hypothesis, self.recovery)} "
            f"({taken.details['bound']})"
        )
        details = taken.details | {"difference": ahead, "disagreements": disagree, "n": len(surplus)}
        state = taken.state
        value = case.estimate.value if np.isfinite(case.estimate.value) else None
        return Verdict(self.name, state, message, value, None, details)

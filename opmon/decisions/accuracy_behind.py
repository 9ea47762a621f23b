"""Champion against challenger: is another version of the model better on the same inputs?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Rule
from opmon.decisions._bound import Bound
from opmon.decisions._judging import checked_name, checked_recovery, unanswered
from opmon.decisions._own import kept_time, time_kept
from opmon.decisions._paired import paired_growth
from opmon.decisions._sequential import advance
from opmon.decisions._watch import Growth
from opmon.decisions.case import OWN, Case, carried
from opmon.errors import InputError
from opmon.types import Document, Problem, Verdict
from opmon.wording import counted, points


@dataclass(frozen=True)
class AccuracyBehind(Rule):
    r"""Alarms when the watched model is less accurate than ``rival`` by more than ``margin`` on the same inputs.

    ``rival`` is the address of another version, ``models:/digits/4`` or ``models:/digits@challenger``; it answers the
    inputs that were drawn for the watched model, so a comparison costs no further label.

    Hypothesis: the frame's mean of :math:`u_i = y_i - y'_i - d`, loss less the rival's loss less the margin, is at most
    0. Inputs on which both are right or both are wrong tell nothing and cost nothing, which is why a paired comparison
    needs a fraction of the labels of two samples. Evidence, bound and recovery are those of the level rule, and so is
    **what it promises**: it is about *every* round. Bets stay below :math:`1/(w(1 + d))` where ``w`` is the largest
    weight of a draw.

    As with ``accuracy_level``, answers are taken for truth, and not corrected for annotators who err.
    """

    rival: str
    """The address of the model version to compare with, such as models:/digits@challenger."""
    margin: float = 0.0
    """How far behind the rival the model may be, as a share: 0.01 is one point."""
    name: str = "accuracy-behind"
    alpha: float | None = None
    """The probability of any false alarm in the life of a model version; 0.05 where ``false_alarms`` is not given."""
    false_alarms: str | None = None
    """Instead of ``alpha``: the mean rate of false alarms, such as ``1 per year``."""
    recovery: float = 20.0
    """How much evidence ends an alarm: one that should go on is ended with probability 1/recovery at most."""

    problems: ClassVar[tuple[Problem, ...]] = ("classification", "multilabel")
    bets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_name(self.name)
        checked_recovery(self.recovery)
        if not isinstance(self.rival, str) or not self.rival.startswith("models:/"):
            raise InputError(
                f"rival must be the address of a model, such as models:/digits@challenger; got {self.rival!r}"
            )
        if isinstance(self.margin, bool) or not isinstance(self.margin, int | float) or not 0 <= self.margin < 1:
            raise InputError(f"margin must lie in 0..1, such as 0.01; got {self.margin!r}")
        Bound.of(self.alpha, self.false_alarms)

    def rival_version(self) -> str:
        """The version that answers the drawn inputs too."""
        return self.rival

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round."""
        if case.sample is None or case.estimate is None or not case.sample.answered.any():
            return unanswered(self.name, case, None)
        if case.rival is None:
            message = f"{self.rival} is this version, or has not answered its inputs; nothing to compare"
            return Verdict(self.name, "unknown", message, details=carried(case.before))
        paired = paired_growth(case.sample, case.sample.outcomes - case.rival, self.margin, case.design)
        if paired is None:
            message = "a draw weighs more than bets allow for: set defensive of the sampler to 0.1"
            return Verdict(self.name, "unknown", message, details=carried(case.before))
        growth, ahead, disagree = paired
        value = case.estimate.value if np.isfinite(case.estimate.value) else None
        own = {"growth": growth.kept(), "difference": ahead, "disagreements": disagree, "value": value}
        return self._verdict(case.before, own | time_kept(case.elapsed))

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict by the round's own evidence, which was kept with the one before."""
        return self._verdict(before, details[OWN]) if OWN in details else None

    def _verdict(self, before: Document, own: Document) -> Verdict:
        bound, growth, elapsed = Bound.of(self.alpha, self.false_alarms), Growth.of(own["growth"]), kept_time(own)
        setting = {"rival": self.rival, "margin": self.margin, "bound": bound.words()}
        taken = advance(growth, before, setting, bound, elapsed, self.recovery)
        ahead, disagree = own["difference"], own["disagreements"]
        side = "ahead of" if ahead > 0 else "behind"
        far = f"{points(ahead)} {side}" if ahead else "level with"
        hypothesis = f"'{self.rival} is at most {points(self.margin)} better'"
        message = (
            f"{self.rival} is {far} the watched version in this round, told apart by "
            f"{disagree:,} of {counted(growth.labels, 'draw')}; {taken.words(hypothesis, self.recovery)} "
            f"({taken.details['bound']})"
        )
        details = {"difference": ahead, "disagreements": disagree, "n": growth.labels, OWN: dict(own)}
        return Verdict(self.name, taken.state, message, own["value"], None, taken.details | details)

"""The level rule on any measure that is a ratio, with a bound on its false alarms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Measure, Ratio, Rule
from opmon.decisions._betting import BETS, HIGHEST, recovery_growth
from opmon.decisions._bound import Bound
from opmon.decisions._judging import checked_name, checked_recovery, unanswered, verdict
from opmon.decisions._own import Own
from opmon.decisions._sequential import advance
from opmon.decisions._shortfall import shortfall, shortfall_of_mean, standing_for
from opmon.decisions._watch import Growth
from opmon.decisions.case import Case, carried
from opmon.decisions.draw_values import terms
from opmon.errors import InputError
from opmon.quantities import Quantity
from opmon.types import Document, Floats, Labelled, Verdict
from opmon.wording import exactly


@dataclass(frozen=True)
class MeasureLevel(Rule):
    r"""Alarms when there is enough evidence that a measure is worse than ``threshold``.

    For measures that are ratios :math:`R = N/D` of two sums over inputs: recall, precision, F1, a mean cost, MAE, a
    share within a tolerance, the Brier score. Others are refused when the configuration is read; ``measure_worse``
    looks at the estimates of any.

    **What it promises** is about *every* round, as with ``accuracy_level``: while the measure is at least as good as
    ``threshold`` in each round, a false alarm has probability ``alpha`` at most, for the whole life of a model version,
    however often one looks.

    Why: where higher is better, :math:`R \ge t` is the same as :math:`N - tD \ge 0`, a statement on a *mean*,
    whatever the size of :math:`D`: for the recall :math:`TP - t\,P \ge 0`, for a cost :math:`t - c \ge 0`. Each draw
    bets against it with its unbiased value of :math:`s = t\,d - n`, never below :math:`-b`, known before the labels
    (the line of a RMSE is held against the mean squared error, as :math:`t^2`):

    .. math:: E_g = \prod_j (1 + \lambda_g c_j v_j), \qquad \lambda_g = f_g / (b\,r),\ f_g \in \{1/128, \dots, 1/2\}

    with the reach :math:`r` of the design. That is an e-value, exact for finite rounds whatever the sampler, except
    CES. Nothing is asymptotic, and the number of positives need not be known. Few answers that count for the measure
    make the rule slow: recall at 1 % positives moves with the positives that are drawn.

    Of accuracy, recall, precision and F1 of a class, and costs the predictions of all inputs say how good each of them
    can be at best, and bets are larger by what that leaves out: only an input that is predicted as the class can speak
    for its recall. Of means over all inputs, such as a MAE or a Brier score, it is known that none can be better than
    perfect, and no weight of the design holds bets back. Of other measures the largest weight does.

    An alarm ends when the rounds since are evidence of recovery, wrongly with probability ``1 / recovery`` at most.
    That takes a measure with a bound on the worse side too: an alarm on MAE or on a log loss does not end by evidence.

    As with ``accuracy_level``, answers are taken for truth.

    >>> MeasureLevel(0.7, of="recall").name
    'measure-level'
    """

    threshold: float
    """The line, in the unit of the measure: no round may be worse."""
    name: str = "measure-level"
    of: str | None = None
    """The measure, by its name in `measures`, such as recall; none: the main one."""
    alpha: float | None = None
    """The probability of any false alarm in the life of a model version; 0.05 where ``false_alarms`` is not given."""
    false_alarms: str | None = None
    """Instead of ``alpha``: the mean rate of false alarms, such as ``1 per year``."""
    recovery: float = 20.0
    """How much evidence ends an alarm: one that should go on is ended with probability 1/recovery at most."""

    bets: ClassVar[bool] = True
    bets_on_ratio: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | float):
            raise InputError(f"threshold must be a number such as 0.7; got {self.threshold!r}")
        if not math.isfinite(self.threshold):
            raise InputError(f"threshold must be a finite number; got {self.threshold}")
        checked_name(self.name)
        if self.of is not None:
            checked_name(self.of)
        checked_recovery(self.recovery)
        Bound.of(self.alpha, self.false_alarms)

    def watches(self) -> str | None:
        return self.of

    def line(self) -> float:
        return self.threshold

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round, with the evidence of all before it."""
        if case.sample is None or case.estimate is None or case.rows is None or case.measure is None:
            return unanswered(self.name, case, self.threshold)
        usable = case.rows.answered & (case.rows.scored if case.measure.needs_scores else True)
        ratio = case.measure.ratio(case.rows.only(usable)) if usable.any() else None
        if ratio is None:
            return unanswered(self.name, case, self.threshold)
        excess = terms(case.sample, np.zeros(len(case.sample.draw)), case.design).excess
        if excess:
            message = f"a draw weighs {excess:.3g}, more than bets allow for: set defensive of the sampler to 0.1"
            return Verdict(self.name, "unknown", message, None, self.threshold, carried(case.before))
        growth = self._growth(case, usable, ratio)
        return self._verdict(case.before, Own(growth, case.estimate, case.elapsed))

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict by the round's own evidence, which was kept with the one before."""
        own = Own.of(details)
        return None if own is None else self._verdict(before, own)

    def _growth(self, case: Case, usable: NDArray[np.bool_], ratio: Ratio) -> Growth:
        assert case.sample is not None
        assert case.estimate is not None
        assert case.measure is not None
        assert case.rows is not None
        line = case.measure.as_ratio(self.threshold)
        below, above = stakes(ratio, case.estimate.quantity, line)
        sign = 1.0 if case.estimate.quantity.better == "lower" else -1.0

        def surplus(of: Ratio) -> Floats:
            return np.asarray(sign * (of.numerator - line * of.denominator))

        heard = replace(case.sample, outcomes=np.where(usable, 0.0, np.nan), problem=None)
        own = np.zeros(len(usable))
        own[usable] = surplus(ratio)
        bettable = terms(heard, own, case.design)
        values, staked = bettable.of(own)[usable], bettable.stakes[usable]
        room = bettable.highest(above)[usable] if math.isfinite(above) else None
        back, labels = recovery_growth(values, staked, room), int(usable.sum())
        short = shortfall(case.measure, case.rows, heard.draw, usable, surplus)
        standing = standing_for(heard, case.rows.predicted, usable) if short is not None else None
        if short is None and self._is_mean(case.measure, case.rows):
            short, standing = shortfall_of_mean(ratio, usable, surplus, below, above), heard
        if short is not None and standing is not None:
            return Growth(short.growth(standing, usable, case.design), back, labels)
        bets = np.minimum(BETS[:, None] * staked, HIGHEST) / (below * bettable.reach[usable])
        return Growth(np.log1p(bets * values).sum(axis=1), back, labels)

    @staticmethod
    def _is_mean(measure: Measure, rows: Labelled) -> bool:
        """Whether each input counts once, and nobody says what its prediction allows: both are known before labels."""
        problem = next((each for each in measure.problems if (each == "multilabel") is (rows.predicted.ndim > 1)), None)
        if problem is None or len(rows) == 0 or measure.possible(rows) is not None:
            return False
        return measure.of_all(problem, rows.classes or ("", "other"))

    def _verdict(self, before: Document, own: Own) -> Verdict:
        bound, quantity = Bound.of(self.alpha, self.false_alarms), own.estimate.quantity
        setting = {"threshold": self.threshold, "of": quantity.name, "bound": bound.words()}
        taken = advance(own.growth, before, setting, bound, own.elapsed, self.recovery)
        hypothesis = f"{quantity.exactly(self.threshold)} or better"
        return verdict(self.name, taken, own, self.threshold, hypothesis, self.recovery)


def stakes(ratio: Ratio, quantity: Quantity, threshold: float) -> tuple[float, float]:
    """How far below 0 the surplus of a draw over the line may lie, and how far above; an error without a bound."""
    better, worse = ratio.highest - threshold, threshold - ratio.lowest
    if quantity.better == "lower":
        better, worse = worse, better
    if not (math.isfinite(better) and math.isfinite(ratio.heaviest)) or quantity.better not in ("higher", "lower"):
        raise InputError(
            f"nothing can be bet on {quantity.name}: no bound is known of how much better than the line an input may "
            "be. Use measure_worse, which looks at the estimates"
        )
    if better <= 0 or worse < 0:
        raise InputError(
            f"nothing can be bet on {quantity.name} at the very best that it may be; got {exactly(threshold)}"
        )
    return ratio.heaviest * better, ratio.heaviest * worse

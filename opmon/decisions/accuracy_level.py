"""The level rule with a bound on its false alarms: is the accuracy below a line?"""

from __future__ import annotations

from dataclasses import dataclass

from opmon.decisions._bound import Bound
from opmon.decisions._judging import checked_name, checked_recovery, checked_share, verdict
from opmon.decisions._on_accuracy import OnAccuracy
from opmon.decisions._own import Own
from opmon.decisions._sequential import advance
from opmon.decisions._words import line_in_words
from opmon.types import Document, Verdict


@dataclass(frozen=True)
class AccuracyLevel(OnAccuracy):
    r"""Alarms when there is enough evidence that the accuracy lies under ``threshold`` (``accuracy < 0.92``).

    **What it promises** is about *every* round: while the accuracy is at least ``threshold`` in each round, a false
    alarm has probability ``alpha`` at most. It promises nothing about the mean over rounds: with a mean two points
    above the line and rounds that vary by three points, some rounds lie below it, and the rule may rightly alarm on
    them. Where that is not what is meant, ``accuracy_mean`` watches the mean of so many rounds.

    Hypothesis: the mean loss is at most :math:`m = 1 - t` in every round. Each round bets against it with the values
    :math:`v_j` of its draws, each of which estimates the mean loss without bias (:mod:`draw_values`):

    .. math:: E_g = \prod_j \big(1 + \lambda_g (v_j - m)\big), \qquad \lambda_g m \in \{1/128, 1/64, \dots, 1/2\}

    is an e-value for each bet although :math:`v_j` is unbounded above, and no bet depends on the round's labels. The
    evidence is the mixture over the bets and over the round in which the trouble began (:mod:`_watch`), so a long
    healthy time does not make the rule slow. It alarms at 1 (:mod:`_bound`):

    - ``alpha`` (0.05 by default): the probability of any false alarm, in the whole life of a model version;
    - ``false_alarms: 1 per year`` instead: the mean rate of false alarms, counted in production time.

    The bound is exact for finite rounds, whatever the sampler, except CES, and holds however often the rule is looked
    at. It needs answers that are missing at random, and each round a draw of its own. A model that is better than the
    line alarms far less often.

    Answers are taken for truth: the bets are on them, and no bound is known for an estimate that was corrected for
    annotators who err. Errors make a model look worse, never better, unless they agree with it: ask for a second
    opinion on apparent failures (``labels: {overlap: {answers: 2, of: failures}}``) where they matter.

    An alarm ends when the rounds since are evidence of recovery, which has a bound of its own: a model that stays at
    the line or below is ever called recovered with probability ``1 / recovery`` at most (5 % by default), for each
    alarm. Squared errors have no upper bound, and an alarm on them does not end by evidence.

    Reference: Waudby-Smith and Ramdas, *Estimating means of bounded random variables by betting*, JRSS B 86, 2024;
    Shin, Ramdas and Rinaldo, *E-detectors*, New England J. of Stat. in Data Science, 2023.

    >>> import numpy as np
    >>> from opmon.decisions.case import Case
    >>> from opmon.estimators.srs import SimpleRandomEstimator
    >>> from opmon.types import Draw, Estimate, Sample
    >>> sample = Sample(Draw("srs", 5000, np.arange(200)), (np.arange(200) < 60) * 1.0)
    >>> estimate = Estimate(0.70, 0.63, 0.76, n=200, frame_size=5000, response=1.0, method="srs")
    >>> AccuracyLevel(0.92).judge(Case(1, [estimate], sample, SimpleRandomEstimator())).state
    'alarm'
    """

    threshold: float
    """The accuracy under which no round may lie."""
    name: str = "accuracy-level"
    alpha: float | None = None
    """The probability of any false alarm in the life of a model version; 0.05 where ``false_alarms`` is not given."""
    false_alarms: str | None = None
    """Instead of ``alpha``: the mean rate of false alarms, such as ``1 per year``."""
    recovery: float = 20.0
    """How much evidence ends an alarm: one that should go on is ended with probability 1/recovery at most."""

    def __post_init__(self) -> None:
        checked_share(self.threshold, "threshold", low=-1e9)  # 1 − squared error may be below 0
        checked_name(self.name)
        checked_recovery(self.recovery)
        Bound.of(self.alpha, self.false_alarms)

    def _verdict(self, before: Document, own: Own) -> Verdict:
        bound = Bound.of(self.alpha, self.false_alarms)
        setting = {"threshold": self.threshold, "bound": bound.words()}
        taken = advance(own.growth, before, setting, bound, own.elapsed, self.recovery)
        hypothesis = f"{line_in_words(self.threshold, own.estimate)} or better"
        return verdict(self.name, taken, own, self.threshold, hypothesis, self.recovery)

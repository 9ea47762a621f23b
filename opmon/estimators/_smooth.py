"""The interval of a smooth function of the draws, by linearisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, stdtrit

from opmon.abc import Measure
from opmon.estimators._curvature import bias_of
from opmon.estimators._known import Known
from opmon.estimators._losses import freedom_of, hall
from opmon.estimators._parts import share_bounds_of
from opmon.estimators._skewed_score import cautious
from opmon.quantities import Quantity
from opmon.types import Estimate, Floats
from opmon.types.draw import KIND

EDGE = 1e-9
TELLING = 10
"""Draws on each side of what is set against each other; with fewer, little is known."""


def smooth(known: Known, measure: Measure, influence: Floats, quantity: Quantity, level: float) -> Estimate:
    """``T̂`` with the variance of ``Σ a_k u_k``; ``u_k`` is the influence that the measure tells for each draw.

    Shares get Student's interval of their logit, which does not leave [0, 1]; where all draws agree, so that nothing
    varies, the interval of a share without a failure in as many draws. What has only an upper end gets Student's
    interval of the logarithm of its distance from there, with a third of the degrees of freedom: a ratio of two mean
    squares spreads farther than it shows (R² with 100 labels was covered in 92 % with all of them). Other values get
    the wider of Hall's and Student's bound on either side. Of draws that aimed at a measure, whose strata are small, a
    little more is asked, as of means (:func:`._skewed_score.cautious`): their weighted F1 was covered in 92 % without.
    The degrees of freedom are those of the terms, and no more
    than the draws of the smallest of the groups that the measure sets against each other, less one. Of a measure that
    is ``curved`` the bias of order 1/n is taken out: :mod:`._curvature`.
    """
    value = measure.value(known.rows, known.weights)
    if known.whole:
        return known.estimate(value, value, value, quantity, "linearised", level, 0.0)
    lowest, highest = (0.0, 1.0) if quantity.share else (-math.inf, measure.highest)
    value = min(max(value, lowest), highest)
    error = math.sqrt(max(known.variance(influence), 0.0))
    if measure.curved:
        value = min(max(value - bias_of(known, measure, influence, value, error), lowest), highest)
    terms = known.weights * influence
    groups = [group for group in measure.groups(known.rows) if group.any()]
    fewest = min((_draws(known, group) for group in groups), default=known.draws)
    freedom = max(min(freedom_of(terms), fewest - 1), 2.0)
    if measure.no_surer_than is not None:
        draws = known.draws if measure.no_surer_than == "a share" else fewest
        error = max(error, math.sqrt(value * (1 - value) / draws))
    asked = cautious(level) if KIND in known.sample.draw.constants else level
    t = float(stdtrit(freedom, 0.5 + asked / 2))
    if value < measure.highest < math.inf:
        away, t = measure.highest - value, float(stdtrit(max(freedom / 3, 2.0), 0.5 + asked / 2))
        low, high = (measure.highest - away * math.exp(sign * t * error / away) for sign in (1, -1))
    elif not quantity.share:
        low, high = _wide(value, error, terms, freedom, asked)
    elif min(value, 1 - value) <= EDGE or error == 0:
        low, high = _edge(known, groups, value, level)
    else:
        reach = t * error / (value * (1 - value))
        low, high = float(expit(logit(value) - reach)), float(expit(logit(value) + reach))
    return known.estimate(value, low, high, quantity, "linearised", level, error, _few(groups))


def _draws(known: Known, group: NDArray[np.bool_]) -> float:
    weights = known.weights[group]
    return float(weights.sum()) ** 2 / float(weights @ weights)


def _few(groups: Sequence[NDArray[np.bool_]]) -> tuple[str, ...]:
    fewest = min((int(group.sum()) for group in groups), default=TELLING)
    if fewest >= TELLING:
        return ()
    draws = "1 answered draw is" if fewest == 1 else f"{fewest} answered draws are"
    return (f"too few to say: only {draws} on one of the sides that are compared",)


def _wide(value: float, error: float, terms: Floats, freedom: float, level: float) -> tuple[float, float]:
    skewness = float((terms**3).sum()) / error**3 if error > 0 else 0.0
    bounds = [hall(value, error, skew, freedom, level) for skew in (skewness, 0.0)]
    return min(low for low, _, _ in bounds), max(high for _, high, _ in bounds)


def _edge(known: Known, groups: Sequence[NDArray[np.bool_]], value: float, level: float) -> tuple[float, float]:
    """The interval of a share of which nothing is seen to vary: that of the smallest group, all of which agrees."""
    smallest = min(groups, key=lambda group: int(group.sum()), default=np.ones(len(known.rows), dtype=np.bool_))
    return share_bounds_of(known, np.full(len(known.rows), float(round(value))), smallest.astype(np.float64), level)

"""The interval of a smooth function of the draws, by linearisation."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit, stdtrit

from opmon.abc import Measure
from opmon.errors import PluginError
from opmon.estimators._known import Known
from opmon.estimators._losses import freedom_of, hall
from opmon.estimators._ratios import Part, share_bounds
from opmon.quantities import Quantity
from opmon.types import Estimate, Floats

EDGE = 1e-9


def smooth(known: Known, measure: Measure, quantity: Quantity, level: float) -> Estimate:
    """``T̂`` with the variance of ``Σ a_k u_k``; ``u_k`` is the influence that the measure tells for each draw.

    Shares get Student's interval of their logit, which does not leave [0, 1]; where all draws agree, so that nothing
    varies, the interval of a share without a failure in as many draws. Other values get the wider of Hall's and
    Student's bound on either side.
    """
    value = measure.value(known.rows, known.weights)
    influence = measure.linearised(known.rows, known.weights)
    if influence is None:
        raise PluginError(f"{type(measure).__name__} has neither ratio() nor linearised(): no interval follows")
    error = math.sqrt(max(known.variance(influence), 0.0))
    terms = known.weights * influence
    freedom = max(freedom_of(terms), 2.0)
    if not quantity.share:
        low, high = _wide(value, error, terms, freedom, level)
    elif min(value, 1 - value) <= EDGE or error == 0:
        low, high = _edge(known, value, level)
    else:
        reach = float(stdtrit(freedom, 0.5 + level / 2)) * error / (value * (1 - value))
        low, high = float(expit(logit(value) - reach)), float(expit(logit(value) + reach))
    return known.estimate(value, low, high, quantity, "linearised", level, error)


def _wide(value: float, error: float, terms: Floats, freedom: float, level: float) -> tuple[float, float]:
    skewness = float((terms**3).sum()) / error**3 if error > 0 else 0.0
    bounds = [hall(value, error, skew, freedom, level) for skew in (skewness, 0.0)]
    return min(low for low, _, _ in bounds), max(high for _, high, _ in bounds)


def _edge(known: Known, value: float, level: float) -> tuple[float, float]:
    """The interval of a share of which nothing is seen to vary."""
    ones = known.of_all(np.ones(len(known.rows)))
    part = Part.of(known.estimator, known.sample, ones * round(value), ones)
    if part.known:
        return value, value
    low, high = share_bounds(part, level)
    return min(low, value), max(high, value)

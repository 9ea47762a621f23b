"""Any measure, assisted by guesses of the truth that were fixed before the labels."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from opmon.abc import Measure
from opmon.estimators._known import Known
from opmon.estimators._narrowed import evened, reshaped, surer
from opmon.estimators._tuning import assisted_variance, cross_fitted_weights
from opmon.estimators.guesses import Guesses, is_bounded, row_by_row
from opmon.estimators.model_assisted import told
from opmon.estimators.proxies import Proxy
from opmon.types import Estimate, Floats, Sample

LEAST = 1e-12
VALUES = 3.0
"""A draw with a value of its own tells as much of a proxy as so many that are right or wrong, of its weight as of how
likely it differs from the labels elsewhere. Of a part of the frame, such as recall, values are of three sizes,
and the weight is told as well; how likely a proxy differs elsewhere is not."""
FOLDS = 10
"""Influences have long tails: a tenth of the draws is little to go without when the weight of a proxy is found."""
USUAL = 1.5
"""Reaches up to so many times a normal one are the proxy's to narrow; what is beyond may be hidden from it."""


def assisted_measure(known: Known, measure: Measure, estimate: Estimate, guesses: Guesses, level: float) -> Estimate:
    """``T̂ − Σ a_k ω_k (v_k − v̄)`` around the estimate ``T̂`` by the labels alone.

    ``u_k`` are the values, or the linearised values, whose weighted sum ``T̂`` is, and ``v_k`` what they would be by
    the guesses (:meth:`.guesses.Guesses.proxy`), whose mean over the frame is ``v̄``. For a mean over all inputs that is
    the difference estimator, unbiased whatever is guessed; for others it is PPI++ on the linearised values, with a bias
    of order 1/n as ``T̂`` has it. ``ω`` is cross-fitted, and drawn towards 0 by ``1 − 3/x``, as in
    :class:`.ModelAssisted`; ``x = (Σ t²)²/Σ t⁴`` with ``t = a u`` is the number of draws that the variance comes from:
    of a share, about the failures heard.

    The interval is that of the labels alone, around the new value. What the proxy takes of the variance is taken from
    the squares of its reaches, which keeps what they have beyond a normal one for what may be hidden; a reach that is
    shorter than a normal one is narrower by the ratio of the standard errors, and evened (:mod:`._narrowed`). Means of
    errors of any size are reshaped as in :class:`.ModelAssisted`; smooth measures get the quantile of what is left.
    """
    if known.whole:
        return estimate
    found = _values(known, measure, estimate.value, guesses)
    if found is None:
        return replace(estimate, notes=(*estimate.notes, f"{guesses.by} says nothing of the {estimate.quantity.name}"))
    u, proxy = found
    sample, base = known.sample, known.estimator
    a, y = base.coefficients(sample), known.of_all(u)
    own = base.variance(sample, y)

    g = proxy.value - proxy.frame_mean

    ratio = measure.ratio(known.rows)
    each = 1.0 if ratio is not None and ratio.binary else VALUES
    telling = each if ratio is not None and ratio.is_mean else VALUES

    def heard(some: Sample) -> float:
        return telling * min(_count(np.where(some.answered, a * values, 0.0)) for values in (y, g))

    if own <= 0:
        why = f"{guesses.by} cannot assist the {estimate.quantity.name}, which does not vary among these answers"
        return replace(estimate, notes=(*estimate.notes, why))
    omega = cross_fitted_weights(base, sample, y, proxy, heard, FOLDS)
    one = own * int(sample.answered.sum()) / max(each * _count(a * y), 1.0)
    variance = assisted_variance(base, sample, y, proxy, omega, own, one)
    value = estimate.value - float(a @ (omega * g))
    narrower = math.sqrt(variance / own)
    below, above = estimate.value - estimate.low, estimate.high - estimate.value
    terms, left = ((a * values)[sample.answered] for values in (y, y - omega * g))
    if ratio is not None and _is_of_errors(measure, known):
        below, above = reshaped(below, above, narrower, terms, left, level)
    else:
        below, above = _reaches(below, above, narrower, math.sqrt(own), level)
    if ratio is None and measure.ratios(known.rows) is None:
        below, above = (surer(terms, left, level) * reach for reach in (below, above))
    width = estimate.high - estimate.low
    found_width = (below + above) / width if 0 < width < math.inf else 1.0
    return replace(
        estimate,
        value=value,
        low=value - below,
        high=value + above,
        method=f"{estimate.method}/model-assisted",
        standard_error=None if estimate.standard_error is None else math.sqrt(variance),
        notes=(*estimate.notes, told(found_width, guesses.by)),
    )


def _values(known: Known, measure: Measure, value: float, guesses: Guesses) -> tuple[Floats, Proxy] | None:
    """The linearised values of the answered draws, and the proxy for them, in the same unit."""
    rows = known.rows
    ratio = measure.ratio(rows)
    if ratio is not None:
        size = 1.0 if ratio.is_mean else float(known.coefficients @ ratio.denominator)
        u = (ratio.numerator - value * ratio.denominator) / size
    else:
        influence = measure.linearised(rows, known.weights)
        size = float(known.coefficients.sum())
        if influence is None:
            if measure.gaps(rows) is not None or measure.quantile(rows) is not None:
                return None
            influence = row_by_row(measure, rows, known.weights)
        if influence is None:
            return None
        u = influence / size
    proxy = guesses.proxy(measure, value)
    if proxy is None or np.ptp(proxy.value) <= LEAST:
        return None
    return u, Proxy(proxy.value / size, proxy.frame_mean / size, proxy.mean_variance / size**2)


def _is_of_errors(measure: Measure, known: Known) -> bool:
    """Whether the measure is a mean of errors of any size."""
    return known.rows.truth.dtype.kind == "f" and not is_bounded(measure, known.rows)


def _count(terms: Floats) -> float:
    """``(Σ t²)²/Σ t⁴``: how many terms the spread of their sum comes from."""
    squares = terms**2
    return float(squares.sum()) ** 2 / max(float((squares**2).sum()), 1e-300)


def _reaches(below: float, above: float, narrower: float, error: float, level: float) -> tuple[float, float]:
    """How far the assisted interval reaches below and above its value, where that by the labels alone does so."""
    normal = USUAL * float(ndtri(0.5 + level / 2)) * error
    taken = max(0.0, 1 - narrower**2) * normal**2
    sides = []
    for reach in (below, above):
        if not math.isfinite(reach) or narrower >= 1:
            sides.append(reach * max(narrower, 1.0))
        elif reach >= normal:
            sides.append(math.sqrt(reach**2 - taken))
        else:
            sides.append(narrower * reach)
    if narrower >= 1:
        return sides[0], sides[1]
    return evened(sides[0], sides[1], narrower, narrower * error, level)

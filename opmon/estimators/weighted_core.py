"""Arithmetic of draws with replacement and unequal probabilities."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from opmon.estimators.proportions_core import effective


def response_weights(answers: NDArray[np.bool_], stratum: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each answer stands for: the draws of its class divided by the answers there, scaled to the whole draw.

    All ones with full response; a class without any answer is carried by the others.
    """
    drawn = np.bincount(stratum, minlength=int(stratum.max()) + 1)
    heard = np.bincount(stratum[answers], minlength=len(drawn))
    factor = np.divide(drawn, heard, out=np.zeros(len(drawn)), where=heard > 0)
    weights = factor[stratum] * answers
    return np.asarray(weights * (len(answers) / weights.sum()))


def poststratified_share(
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    stratum: NDArray[np.int64],
    sizes: NDArray[np.int64],
    level: float,
) -> tuple[float, float]:
    """An interval of a failure rate from weighted draws in classes ``h`` of similar probability.

    Class rates are weighted means; the variance ``V = Σ W_h² p̃_h(1 − p̃_h) / m_h`` takes each rate smoothed by half a
    failure at the class's effective number of draws ``m_h = (Σw)²/Σw²``, so that a class in which no failure was seen
    still counts, by its share ``W_h`` of the frame. Wilson's interval at ``p̄(1 − p̄)/V`` follows.
    """
    count = len(sizes)
    sums = np.bincount(stratum, weights=weight, minlength=count)
    squares = np.bincount(stratum, weights=weight**2, minlength=count)
    failed = np.bincount(stratum, weights=weight * y, minlength=count)
    seen = sums > 0
    m = np.divide(sums**2, squares, out=np.zeros(count), where=seen)
    rate = np.divide(failed, sums, out=np.zeros(count), where=seen)
    smooth = (m * rate + 0.5) / (m + 1)
    share = sizes / sizes.sum()
    variance = float((share**2 * smooth * (1 - smooth) / np.maximum(m, 0.5)).sum())
    centre = float((share * np.where(seen, rate, smooth)).sum())
    middle = float((share * smooth).sum())
    return effective(centre, max(middle * (1 - middle), 1e-12) / variance, level)


def weighted_mean_error(terms: NDArray[np.float64]) -> float | None:
    """The standard error of the mean of independent terms; None for a single one."""
    return float(terms.std(ddof=1) / math.sqrt(len(terms))) if len(terms) > 1 else None

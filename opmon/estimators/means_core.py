"""Intervals of a mean of unbounded, skewed terms, such as squared errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special


def skewed_mean(mean: float, standard_error: float, skewness: float, n: float, level: float) -> tuple[float, float]:
    """Hall's interval: Student's t after a cubic transformation that removes the skewness ``γ`` of the terms.

    ``g⁻¹(x) = (3√n/γ) · ((1 + (γ/√n)(x − γ/(6√n)))^{1/3} − 1)`` takes the place of the quantile ``x``, so that the
    interval reaches further to the side of the long tail (Hall, J. R. Stat. Soc. B 54, 1992).
    """
    if standard_error == 0:
        return mean, mean
    t = float(special.stdtrit(max(n - 1, 1), (1 + level) / 2))
    return mean - _inverse(t, skewness, n) * standard_error, mean - _inverse(-t, skewness, n) * standard_error


def _inverse(x: float, skewness: float, n: float) -> float:
    if abs(skewness) < 1e-6:
        return x
    inner = 1 + skewness * (x - skewness / (6 * math.sqrt(n))) / math.sqrt(n)
    return 3 * math.sqrt(n) / skewness * (math.copysign(abs(inner) ** (1 / 3), inner) - 1)


def skewness_of(terms: NDArray[np.float64]) -> float:
    """The sample skewness, 0 where the terms do not vary."""
    deviation = terms - terms.mean()
    spread = math.sqrt(float((deviation**2).mean()))
    return float((deviation**3).mean() / spread**3) if spread > 0 else 0.0

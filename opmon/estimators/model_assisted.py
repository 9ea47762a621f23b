"""Model-assisted estimation: a proxy for the outcome of every input, corrected by the labels, under any design."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators.core import accuracy, is_binary
from opmon.estimators.intervals import wilson
from opmon.estimators.linear_core import LinearEstimator
from opmon.estimators.losses_core import hall
from opmon.types import Estimate, Sample


@dataclass(frozen=True, eq=False)
class ModelAssisted:
    """The difference estimator ``θ̂ = mean_D(ω g) + Σ a_k (y_k − ω g_k)``, around the estimator of any design.

    ``proxy`` holds ``g_i``, a guess of the outcome, for every input of the frame: a failure probability calibrated on
    **other** labels than these (those of earlier rounds, or the other folds of ``cross_fitted_proxy``), whatever its
    quality. ``Σ a_k`` times a value known for the whole frame is unbiased for its mean, so the proxy's error cancels;
    what is left has the variance of the residuals ``y − ω g``. ``ω`` (``weight``) is 1, or with None the one that
    minimises the estimated variance: ``Cov(Σay, Σag)/Var(Σag)``, kept in [0, 1], at the price of a bias of order 1/n.

    Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992), section 6.3; Angelopoulos et al.,
    Prediction-powered inference, Science 382 (2023), and PPI++ (2023) for ``ω``. Fails to help where the proxy says
    little: then ``ω`` near 0 gives the design's own estimate back.
    """

    base: LinearEstimator
    proxy: NDArray[np.float64]
    weight: float | None = 1.0

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        if len(self.proxy) != sample.draw.frame_size or not np.isfinite(self.proxy).all():
            raise InputError(
                f"the proxy needs one finite value per input of the frame: {sample.draw.frame_size}; "
                f"got {len(self.proxy)}. Predict it for the whole frame"
            )
        a = self.base.coefficients(sample)
        y = np.where(sample.answered, sample.outcomes, 0.0)
        g = self.proxy[sample.draw.positions]
        omega = self._weight(sample, y, g)
        residual = y - omega * g
        loss = omega * float(self.proxy.mean(dtype=np.float64)) + float(a @ residual)
        heard = sample.answered
        variance = self.base.variance(sample, residual)
        low, high = _interval(loss, variance, y[heard], residual[heard] * a[heard], level)
        error = math.sqrt(variance) if heard.sum() > 1 else None
        method = f"{sample.draw.design}/model-assisted"
        return accuracy(sample, loss, low, high, method=method, level=level, standard_error=error)

    def _weight(self, sample: Sample, y: NDArray[np.float64], g: NDArray[np.float64]) -> float:
        if self.weight is not None:
            return self.weight
        of_g = self.base.variance(sample, g)
        both = (self.base.variance(sample, y + g) - self.base.variance(sample, y) - of_g) / 2
        return min(max(both / of_g, 0.0), 1.0) if of_g > 0 else 0.0


def _interval(
    loss: float, variance: float, y: NDArray[np.float64], terms: NDArray[np.float64], level: float
) -> tuple[float, float]:
    """Wilson's interval at the effective number of draws for a share, Hall's for unbounded losses."""
    n = len(y)
    if is_binary(y):
        rate = min(max(loss, 0.0), 1.0)
        smooth = (rate * n + 1) / (n + 2)
        size = smooth * (1 - smooth) / variance if variance > 0 else float(n)
        low, high, _ = wilson(rate, min(size, 4.0 * n), level)
        return low, high
    deviation = terms - terms.mean()
    skewness = float((deviation**3).sum()) / variance**1.5 if variance > 0 else 0.0
    found = hall(loss, math.sqrt(variance), skewness, max(n - 1.0, 1.0), level)
    return found[0], found[1]

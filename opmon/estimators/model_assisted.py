"""Model-assisted estimation: a proxy for the outcome of every input, corrected by the labels, under any design."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators.core import accuracy
from opmon.estimators.linear_core import LinearEstimator
from opmon.estimators.proxies import Proxy
from opmon.types import Estimate, Sample


@dataclass(frozen=True, eq=False)
class ModelAssisted:
    """The difference estimator ``θ̂ = mean_D(ω g) + Σ a_k (y_k − ω g_k)``, around the estimator of any design.

    ``proxy`` holds ``g``, a guess of the outcome: a failure probability calibrated on **other** labels than that of
    the draw it is used for (those of earlier rounds, or the other folds of :func:`~.proxies.cross_fitted`), whatever
    its quality. ``Σ a_k g_k`` is unbiased for the mean of ``g``, so the proxy's error cancels; what is left has the
    variance of the residuals ``y − ω g``. ``ω`` (``weight``) is 1, or with None the one that minimises the estimated
    variance, ``Cov(Σay, Σag)/Var(Σag)``, kept in [0, 1], at the price of a bias of order 1/n.

    The interval is the design's own around the new value, narrower by the ratio of the standard errors: so what the
    design says of failures it has not seen is kept.

    Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992), section 6.3; Angelopoulos et al.,
    Prediction-powered inference, Science 382 (2023), and PPI++ (2023) for ``ω``. Fails to help where the proxy says
    little: then ``ω`` near 0 gives the design's own estimate back.
    """

    base: LinearEstimator
    proxy: Proxy
    weight: float | None = 1.0

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        if len(self.proxy.value) != len(sample.draw):
            raise InputError(
                f"the proxy needs one value per draw: {len(sample.draw)}; got {len(self.proxy.value)}. "
                f"Make it with Proxy.of_frame(guesses, draw) or cross_fitted(variables, sample, rng)"
            )
        a = self.base.coefficients(sample)
        y = np.where(sample.answered, sample.outcomes, 0.0)
        g = self.proxy.value
        omega = self._weight(sample, y, g)
        residual = y - omega * g
        loss = omega * float(self.proxy.frame_mean.mean()) + float(a @ residual)
        variance = self.base.variance(sample, residual)
        base = self.base.estimate(sample, level)
        narrower = _relative_error(variance, base.standard_error)
        return accuracy(
            sample,
            loss,
            loss - narrower * (base.high - base.value),
            loss + narrower * (base.value - base.low),
            method=f"{sample.draw.design}/model-assisted",
            level=level,
            standard_error=None if base.standard_error is None else math.sqrt(variance),
            notes=base.notes,
        )

    def _weight(self, sample: Sample, y: NDArray[np.float64], g: NDArray[np.float64]) -> float:
        if self.weight is not None:
            return self.weight
        of_g = self.base.variance(sample, g)
        both = (self.base.variance(sample, y + g) - self.base.variance(sample, y) - of_g) / 2
        return min(max(both / of_g, 0.0), 1.0) if of_g > 0 else 0.0


def _relative_error(variance: float, error: float | None) -> float:
    """The standard error relative to the design's own; 1 where the design saw no spread to compare with."""
    return math.sqrt(variance) / error if error else 1.0

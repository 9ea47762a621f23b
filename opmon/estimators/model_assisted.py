"""Model-assisted estimation: a proxy for the outcome of every input, corrected by the labels, under any design."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators._answers import estimate_of, loss_of
from opmon.estimators._linear import LinearEstimator
from opmon.estimators.proxies import Proxy
from opmon.types import Estimate, Sample


@dataclass(frozen=True, eq=False)
class ModelAssisted:
    """The difference estimator ``θ̂ = mean_D(ω g) + Σ a_k (y_k − ω g_k)``, around the estimator of any design.

    ``proxy`` holds ``g``, a guess of the outcome: a failure probability calibrated on **other** labels than that of
    the draw it is used for (those of earlier rounds, or the other folds of :func:`~.proxies.cross_fitted`), whatever
    its quality. ``Σ a_k g_k`` is unbiased for the mean of ``g``, so the proxy's error cancels; what is left has the
    variance of the residuals ``y − ω g``. ``ω`` (``weight``) minimises the estimated variance,
    ``Cov(Σay, Σag)/Var(Σag)``, kept in [0, 1], at the price of a bias of order 1/n; a number fixes it. Once every input
    of the frame has an answer there is nothing to guess, and the design's own estimate is given.

    The interval is the design's own around the new value, narrower by the ratio of the standard errors: so what the
    design says of failures it has not seen is kept.

    Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992), section 6.3; Angelopoulos et al.,
    Prediction-powered inference, Science 382 (2023), and PPI++ (2023) for ``ω``. Fails to help where the proxy says
    little: then ``ω`` near 0 gives the design's own estimate back. Measured on 1000 inputs, cross-fitted on the
    variables that the design uses as well: 0.75 to 0.86 of the error of simple random sampling, 0.99 to 1.03 of that of
    SSRS, GBS and the adaptive design, 1.0 of SUPS, RHC-S, 2-UPS and DeepEST. Fixed at 1 it does harm: 1.1 to 2.4 of the
    error of the latter, whose draws say little of the mean of ``g``; and where strata are drawn whole a cross-fitted
    proxy, another function for every fold, adds noise that the interval does not know (coverage 0.43 for SSRS at 900 of
    1000).
    """

    base: LinearEstimator
    proxy: Proxy
    weight: float | None = None

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        if len(self.proxy.value) != len(sample.draw):
            raise InputError(
                f"the proxy needs one value per draw: {len(sample.draw)}; got {len(self.proxy.value)}. "
                f"Make it with Proxy.of_frame(guesses, draw) or cross_fitted(variables, sample, rng)"
            )
        if len(np.unique(sample.draw.positions[sample.answered])) == sample.draw.frame_size:
            return self.base.estimate(sample, level)
        a = self.base.coefficients(sample)
        y = np.where(sample.answered, sample.outcomes, 0.0)
        g = self.proxy.value
        omega = self._weight(sample, y, g)
        residual = y - omega * g
        loss = omega * float(self.proxy.frame_mean.mean()) + float(a @ residual)
        variance = self.base.variance(sample, residual)
        base = self.base.estimate(sample, level)
        narrower = _relative_error(variance, base.standard_error)
        base_loss, base_low, base_high = loss_of(base)
        return estimate_of(
            sample,
            loss,
            loss - narrower * (base_loss - base_low),
            loss + narrower * (base_high - base_loss),
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

"""Model-assisted estimation: a proxy for the outcome of every input, corrected by the labels, under any design."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators._answers import estimate_of, loss_of
from opmon.estimators._linear import LinearEstimator
from opmon.estimators._narrowed import reshaped
from opmon.estimators._tuning import assisted_variance, cross_fitted_weights, tuned_weight
from opmon.estimators.proxies import Proxy
from opmon.problems import is_binary
from opmon.types import Estimate, Floats, Sample
from opmon.wording import percent


@dataclass(frozen=True, eq=False)
class ModelAssisted:
    """The difference estimator ``θ̂ = Σ a_k (y_k − ω_k (g_k − ḡ))`` around a design's linear estimator ``Σ a_k y_k``.

    ``proxy`` holds ``g``, a guess of the outcome that was fixed without the labels of this draw, and its mean ``ḡ``
    over the frame. ``Σ a_k g_k`` is unbiased for ``ḡ``, so whatever is wrong with the proxy cancels; what is left has
    the variance of the residuals ``y − ω g``.

    ``ω`` minimises the estimated variance, ``Cov(Σay, Σag) / (Var(Σag) + Var(ḡ))``, and is at least 0. It is
    cross-fitted: the inputs are split at random into five parts, and each has the weight that the labels of the others
    give it, so that no label has a say in its own correction; what the weights' differences add by the luck of the
    split is in the variance. It is drawn towards 0, by ``1 − 3/x`` with ``x = n Var(Σay)/Σa²``, about the number of
    failures heard (of losses, of answers): a handful of them tells little of a proxy. A proxy that is cross-fitted
    itself has one weight, at most 1, by all labels. ``weight`` fixes it.

    Where ``ḡ`` is itself the mean over a random sample of the frame (two phases: a judge was asked about more inputs
    than people), its variance is the proxy's ``mean_variance`` and counts as ``ω² Var(ḡ)``; that sample is drawn
    independently of this draw, so that the two add up.

    The interval is the design's own around the new value, narrower by the ratio of the standard errors: what the
    design says of failures it has not seen is kept. A proxy that was right on all draws may still be wrong on others:
    ``2 R² Σ a²/n`` is added to the variance, ``R²`` the share of it that the proxy has taken away. Of losses each side
    changes as the residuals are less skew than they are: :func:`._narrowed.reshaped`.

    Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992), sections 6.3 and 9.3 (two phases);
    Angelopoulos et al., Prediction-powered inference, Science 382 (2023), and PPI++ (2023) for ``ω``. Fails to help
    where the design already knows what the proxy knows (draws in proportion to a variable), and hardly helps with fewer
    than ten failures among the labels. ``tests/benchmarks/proxies.py`` prints widths and coverage.
    """

    base: LinearEstimator
    proxy: Proxy
    weight: float | None = None
    by: str = "a proxy"
    """What assists, as the estimate's note says it."""

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        if len(self.proxy.value) != len(sample.draw):
            raise InputError(
                f"the proxy needs one value per draw: {len(sample.draw)}; got {len(self.proxy.value)}. "
                f"Make it with Proxy.of_frame(guesses, draw) or cross_fitted(variables, sample, rng)"
            )
        if len(np.unique(sample.draw.positions[sample.answered])) == sample.draw.frame_size:
            return self.base.estimate(sample, level)  # there is nothing to guess
        a = self.base.coefficients(sample)
        y = np.where(sample.answered, sample.outcomes, 0.0)
        omega = self._weights(sample, y)
        loss = float(a @ (y - omega * (self.proxy.value - self.proxy.frame_mean)))
        base = self.base.estimate(sample, level)
        own = self.base.variance(sample, y)
        binary = is_binary(sample.outcomes[sample.answered], sample.problem)
        one = float(a @ a) if binary else own
        variance = assisted_variance(self.base, sample, y, self.proxy, omega, own, one)
        narrower = math.sqrt(variance / own) if own > 0 else 1.0
        base_loss, base_low, base_high = loss_of(base)
        below, above = base_loss - base_low, base_high - base_loss
        if binary:
            below, above = narrower * below, narrower * above
        else:
            residual = y - omega * (self.proxy.value - self.proxy.frame_mean)
            terms, left = ((a * values)[sample.answered] for values in (y, residual))
            below, above = reshaped(below, above, narrower, terms, left, level)
        return estimate_of(
            sample,
            loss,
            loss - below,
            loss + above,
            method=f"{sample.draw.design}/model-assisted",
            level=level,
            standard_error=None if base.standard_error is None else math.sqrt(variance),
            notes=(*base.notes, told(narrower, self.by)),
        )

    def _weights(self, sample: Sample, y: Floats) -> NDArray[np.float64]:
        """``ω`` of each draw."""
        if self.weight is not None:
            return np.full(len(sample.draw), self.weight)
        if np.ptp(self.proxy.frame_mean) > 0:
            return np.full(len(sample.draw), min(tuned_weight(self.base, sample, y, self.proxy, self._heard), 1.0))
        return cross_fitted_weights(self.base, sample, y, self.proxy, self._heard)

    def _heard(self, sample: Sample) -> float:
        """The number of failures among the answers; of losses that of answers."""
        heard = float(sample.answered.sum())
        if is_binary(sample.outcomes[sample.answered], sample.problem):
            y = np.where(sample.answered, sample.outcomes, 0.0)
            heard *= self.base.variance(sample, y) / float((self.base.coefficients(sample) ** 2).sum())
        return heard


def assisted(base: LinearEstimator, sample: Sample, level: float = 0.95, by: str = "a proxy") -> Estimate:
    """The estimate with the proxy that the draw carries; the design's own where it carries none."""
    proxy = Proxy.of_draw(sample.draw)
    return base.estimate(sample, level) if proxy is None else ModelAssisted(base, proxy, by=by).estimate(sample, level)


def told(narrower: float, by: str = "a proxy") -> str:
    """What a proxy has done, in words.

    >>> told(0.716)
    'a proxy that was fixed before the labels assists: the interval is 28 % narrower than by the labels alone'
    """
    share = percent(abs(1 - narrower), 0)
    what = f"{share} {'narrower' if narrower < 1 else 'wider'} than" if share != percent(0, 0) else "as wide as"
    return f"{by} that was fixed before the labels assists: the interval is {what} by the labels alone"

"""Model-assisted estimation: a proxy for the outcome of every input, corrected by the labels, under any design."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from opmon.errors import InputError
from opmon.estimators._answers import estimate_of, loss_of
from opmon.estimators._linear import LinearEstimator
from opmon.estimators.proxies import Proxy
from opmon.problems import is_binary
from opmon.types import Estimate, Floats, Sample
from opmon.wording import percent

FOLDS = 5
FEW = 3.0
"""With so few failures heard the weight is 0, and with more it is drawn towards 0 by their share of them."""
UNSEEN = 2.0
"""So many draws on which proxy and label could differ, and happened not to, are allowed for in the interval."""


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
    ``2 R² Σ a²/n`` is added to the variance, ``R²`` the share of it that the proxy has taken away. Of skew losses the
    residuals are less skew than they are: by the share ``R²`` the shorter side comes up to that of a normal interval.

    Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992), sections 6.3 and 9.3 (two phases);
    Angelopoulos et al., Prediction-powered inference, Science 382 (2023), and PPI++ (2023) for ``ω``. Fails to help
    where the design already knows what the proxy knows (draws in proportion to a variable), and hardly helps with fewer
    than ten failures among the labels. ``tests/benchmarks/proxies.py`` prints widths and coverage.
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
            return self.base.estimate(sample, level)  # there is nothing to guess
        a = self.base.coefficients(sample)
        y = np.where(sample.answered, sample.outcomes, 0.0)
        omega = self._weights(sample)
        residual = y - omega * (self.proxy.value - self.proxy.frame_mean)
        loss, mean_weight = float(a @ residual), float(a @ omega)
        variance = self.base.variance(sample, residual) + mean_weight**2 * self.proxy.mean_variance
        variance += float(a**2 @ (omega - omega[sample.answered].mean()) ** 2) * float(self.proxy.value.var())
        base = self.base.estimate(sample, level)
        own = self.base.variance(sample, y)
        variance += self._unseen(sample, a, variance, own)
        narrower = math.sqrt(variance / own) if own > 0 else 1.0
        base_loss, base_low, base_high = loss_of(base)
        below, above = narrower * (base_loss - base_low), narrower * (base_high - base_loss)
        if not is_binary(sample.outcomes[sample.answered], sample.problem):
            taken = max(0.0, 1 - narrower**2)
            even = float(ndtri(0.5 + level / 2)) * math.sqrt(variance)
            below, above = (side + taken * max(even - side, 0.0) for side in (below, above))
        return estimate_of(
            sample,
            loss,
            loss - below,
            loss + above,
            method=f"{sample.draw.design}/model-assisted",
            level=level,
            standard_error=None if base.standard_error is None else math.sqrt(variance),
            notes=(*base.notes, told(narrower)),
        )

    def _unseen(self, sample: Sample, a: Floats, variance: float, own: float) -> float:
        """What draws on which proxy and label differ, and which were not drawn by chance, add to the variance."""
        if own <= 0:
            return 0.0
        binary = is_binary(sample.outcomes[sample.answered], sample.problem)
        one = float(a @ a) if binary else own  # the variance of the sum if every draw were such a one
        return UNSEEN * max(0.0, 1 - variance / own) * one / int(sample.answered.sum())

    def _weights(self, sample: Sample) -> NDArray[np.float64]:
        """``ω`` of each draw: the one that the answers of the other parts give it."""
        if self.weight is not None:
            return np.full(len(sample.draw), self.weight)
        if np.ptp(self.proxy.frame_mean) > 0:
            return np.full(len(sample.draw), min(self._weight(sample), 1.0))
        inputs, which = np.unique(sample.draw.positions, return_inverse=True)
        part = np.random.default_rng([sample.draw.frame_size, len(inputs)]).permutation(len(inputs))[which] % FOLDS
        weights = np.zeros(len(part))
        for number in range(FOLDS):
            mine = part == number
            others = replace(sample, outcomes=np.where(mine, np.nan, sample.outcomes))
            if mine.any() and int(others.answered.sum()) > 1:
                weights[mine] = self._weight(others)
        return weights

    def _weight(self, sample: Sample) -> float:
        """``ω`` by all answers of a sample."""
        y = np.where(sample.answered, sample.outcomes, 0.0)
        g, variance = self.proxy.value, self.base.variance
        of_g = variance(sample, g)
        both = (variance(sample, y + g) - variance(sample, y) - of_g) / 2
        if of_g <= 0 or both <= 0:
            return 0.0
        failures = float(sample.answered.sum())
        if is_binary(sample.outcomes[sample.answered], sample.problem):
            failures *= variance(sample, y) / float((self.base.coefficients(sample) ** 2).sum())
        return both / (of_g + self.proxy.mean_variance) * max(0.0, 1 - FEW / max(failures, FEW))


def assisted(base: LinearEstimator, sample: Sample, level: float = 0.95) -> Estimate:
    """The estimate with the proxy that the draw carries; the design's own where it carries none."""
    proxy = Proxy.of_draw(sample.draw)
    return base.estimate(sample, level) if proxy is None else ModelAssisted(base, proxy).estimate(sample, level)


def told(narrower: float) -> str:
    """What a proxy has done, in words.

    >>> told(0.716)
    'a proxy that was fixed before the labels assists: the interval is 28 % narrower than by the labels alone'
    """
    by = percent(abs(1 - narrower), 0)
    what = f"{by} {'narrower' if narrower < 1 else 'wider'} than" if by != percent(0, 0) else "as wide as"
    return f"a proxy that was fixed before the labels assists: the interval is {what} by the labels alone"

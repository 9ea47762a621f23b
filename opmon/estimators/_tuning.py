"""How much a proxy counts beside the labels: its weight, by labels that have no say in their own correction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from opmon.estimators._linear import LinearEstimator
from opmon.estimators.proxies import Proxy
from opmon.types import Floats, Sample

FOLDS = 5
FEW = 3.0
"""With so few failures heard the weight is 0, and with more it is drawn towards 0 by their share of them."""
UNSEEN = 2.0
"""So many draws on which proxy and label could differ, and happened not to, are allowed for in the interval."""
Heard = Callable[[Sample], float]
"""How many draws of a sample tell what a proxy is worth, such as the failures among them."""


def cross_fitted_weights(
    base: LinearEstimator, sample: Sample, y: Floats, proxy: Proxy, heard: Heard, folds: int = FOLDS
) -> NDArray[np.float64]:
    """``ω`` of each draw for ``Σ a (y − ω (g − ḡ))``: the one that the answers of the other parts give it."""
    inputs, which = np.unique(sample.draw.positions, return_inverse=True)
    part = np.random.default_rng([sample.draw.frame_size, len(inputs)]).permutation(len(inputs))[which] % folds
    weights = np.zeros(len(part))
    for number in range(folds):
        mine = part == number
        others = replace(sample, outcomes=np.where(mine, np.nan, sample.outcomes))
        if mine.any() and int(others.answered.sum()) > 1:
            weights[mine] = tuned_weight(base, others, np.where(mine, 0.0, y), proxy, heard)
    return weights


def tuned_weight(base: LinearEstimator, sample: Sample, y: Floats, proxy: Proxy, heard: Heard) -> float:
    """``ω`` by all answers of a sample: ``Cov(Σay, Σag) / (Var(Σag) + Var(ḡ))``, at least 0; less where few
    are heard."""
    g, variance = proxy.value, base.variance
    of_g = variance(sample, g)
    both = (variance(sample, y + g) - variance(sample, y) - of_g) / 2
    if of_g <= 0 or both <= 0:
        return 0.0
    return both / (of_g + proxy.mean_variance) * max(0.0, 1 - FEW / max(heard(sample), FEW))


def assisted_variance(
    base: LinearEstimator, sample: Sample, y: Floats, proxy: Proxy, omega: NDArray[np.float64], own: float, one: float
) -> float:
    """The variance of ``Σ a (y − ω (g − ḡ))``, where that of ``Σ a y`` is ``own``.

    It has what the weights' differences add by the luck of the split, and what draws add on which proxy and label
    differ and which were not drawn by chance: ``one`` is the variance of the sum if every draw were such a one.
    """
    a, heard = base.coefficients(sample), sample.answered
    residual = y - omega * (proxy.value - proxy.frame_mean)
    variance = base.variance(sample, residual) + float(a @ omega) ** 2 * proxy.mean_variance
    variance += float(a**2 @ (omega - omega[heard].mean()) ** 2) * float(proxy.value.var())
    if own > 0:
        variance += UNSEEN * max(0.0, 1 - variance / own) * one / int(heard.sum())
    return variance

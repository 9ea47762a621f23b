"""How many inputs of production an answered one stands for."""

from __future__ import annotations

from collections import Counter

import numpy as np

from opmon import plugins
from opmon.estimators._linear import LinearEstimator
from opmon.types import Draw, Sample


def linear(draw: Draw) -> LinearEstimator | None:
    """The estimator of a draw's design, where it is one weighted sum."""
    estimator = plugins.make("estimator", draw.design)
    return estimator if hasattr(estimator, "coefficients") else None


def weight_of(sample: Sample) -> dict[int, float]:
    """How many inputs of the frame each answered one stands for; of an input drawn twice, both times together."""
    draw, estimator = sample.draw, linear(sample.draw)
    even = np.full(len(draw), 1 / len(draw))
    each = draw.frame_size * (even if estimator is None else estimator.coefficients(sample))
    weights: Counter[int] = Counter()
    for position, weight in zip(draw.positions.tolist(), each.tolist(), strict=True):
        weights[position] += weight
    return dict(weights)

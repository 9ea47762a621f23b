"""How many inputs of production an answered one stands for."""

from __future__ import annotations

from collections import Counter

import numpy as np

from opmon import plugins
from opmon.types import Sample


def weight_of(sample: Sample) -> dict[int, float]:
    """How many inputs of the frame each answered one stands for; of an input drawn twice, both times together."""
    draw = sample.draw
    estimator = plugins.make("estimator", draw.design)
    if hasattr(estimator, "coefficients"):
        each = draw.frame_size * estimator.coefficients(sample)
    else:
        each = np.full(len(draw), draw.frame_size / len(draw))
    weights: Counter[int] = Counter()
    for position, weight in zip(draw.positions.tolist(), each.tolist(), strict=True):
        weights[position] += weight
    return dict(weights)

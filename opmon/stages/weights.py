"""How many inputs of production an answered one stands for."""

from __future__ import annotations

from collections import Counter
from typing import cast

from opmon import plugins
from opmon.estimators._linear import LinearEstimator
from opmon.types import Sample


def linear(sample: Sample) -> LinearEstimator | None:
    """The estimator of a sample's design, where it is one weighted sum."""
    estimator = plugins.make("estimator", sample.draw.design)
    return None if estimator.coefficients(sample) is None else cast(LinearEstimator, estimator)


def weight_of(sample: Sample) -> dict[int, float] | None:
    """How many inputs of the frame each answered one stands for; of an input drawn twice, both times together.

    None where the design's estimator does not tell: equal weights would be wrong without a word.
    """
    draw, estimator = sample.draw, linear(sample)
    if estimator is None:
        return None
    each = draw.frame_size * estimator.coefficients(sample)
    weights: Counter[int] = Counter()
    for position, weight in zip(draw.positions.tolist(), each.tolist(), strict=True):
        weights[position] += weight
    return dict(weights)

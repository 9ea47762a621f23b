"""How many inputs of production an answered one stands for."""

from __future__ import annotations

from collections import Counter
from typing import cast

import numpy as np

from opmon import plugins
from opmon.estimators._linear import LinearEstimator
from opmon.types import Sample


def linear(sample: Sample) -> LinearEstimator | None:
    """The estimator of a sample's design, where it is one weighted sum whose variance it tells."""
    estimator = plugins.make("estimator", sample.draw.design)
    if estimator.coefficients(sample) is None or estimator.variance(sample, np.zeros(len(sample.draw))) is None:
        return None
    return cast(LinearEstimator, estimator)


def weight_of(sample: Sample) -> dict[int, float] | None:
    """How many inputs of the frame each answered one stands for; of an input drawn twice, both times together.

    None where the design's estimator does not tell: equal weights would be wrong without a word.
    """
    draw = sample.draw
    coefficients = plugins.make("estimator", draw.design).coefficients(sample)
    if coefficients is None:
        return None
    each = draw.frame_size * coefficients
    weights: Counter[int] = Counter()
    for position, weight in zip(draw.positions.tolist(), each.tolist(), strict=True):
        weights[position] += weight
    return dict(weights)

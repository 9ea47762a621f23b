"""The mean of scores that nearly all are the same: their spread tells nothing of the few that may differ."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from opmon.abc import Estimator
from opmon.estimators._answers import loss_of
from opmon.estimators._linear import LinearEstimator
from opmon.problems import is_binary
from opmon.types import Estimate, Sample

ALIKE = 0.5
"""Where so large a part of the draws lose the same, it is bounded how many inputs lose anything else."""


def of_scores(estimator: Estimator, sample: Sample, estimate: Estimate) -> Estimate:
    """The estimate of a mean score from 0 to 1, whose interval is no wider than what all that differ can do to it."""
    if estimate.counted or is_binary(sample.outcomes[sample.answered], "judged"):
        return estimate
    low, high = beside_usual(estimator, sample, 1.0, estimate.level)
    return replace(
        estimate,
        low=min(max(estimate.low, 1 - high), estimate.value),
        high=max(min(estimate.high, 1 - low), estimate.value),
    )


def beside_usual(
    estimator: Estimator | LinearEstimator, sample: Sample, span: float, level: float
) -> tuple[float, float]:
    """Bounds of a mean loss between 0 and ``span`` by the share of inputs that do not lose what most do: each of them
    may lose nothing, and all there is.

    An interval by the losses' own spread has next to no end where one of sixty answers differs from the others.
    """
    losses = sample.outcomes[sample.answered]
    values, counts = np.unique(losses, return_counts=True)
    usual = float(values[counts.argmax()])
    if counts.max() < ALIKE * len(losses):
        return 0.0, math.inf
    other = np.where(sample.answered, np.abs(sample.outcomes - usual) > 1e-12 * span, np.nan)
    share = loss_of(estimator.estimate(replace(sample, outcomes=other, problem="classification"), level))[2]
    return usual - share * usual, usual + share * (span - usual)

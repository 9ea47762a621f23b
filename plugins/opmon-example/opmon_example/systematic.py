"""Systematic sampling: every k-th input of the round, from a random start. With its estimator."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from opmon.abc import Estimator, Sampler
from opmon.errors import InputError
from opmon.types import Draw, Estimate, Frame, Sample

DESIGN = "systematic"


@dataclass(frozen=True)
class Systematic(Sampler):
    """Every ``N/n``-th input in the order of the log, from a random start; each has the same probability.

    It spreads the labels evenly over the time of the round, so it is at least as precise as simple random sampling
    where the accuracy drifts within a round.
    """

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
            raise InputError(f"budget is a whole number of labels, at least 1; got {budget!r}")
        if frame.size < 1:
            raise InputError("the frame is empty; there is nothing to draw from")
        count = min(budget, frame.size)
        positions = np.floor((np.arange(count) + rng.random()) * (frame.size / count)).astype(np.int64)
        if count == frame.size:
            positions = rng.permutation(frame.size)
        return Draw(DESIGN, frame.size, positions, {"place": np.argsort(np.argsort(positions))})


@dataclass(frozen=True)
class SystematicEstimator(Estimator):
    """The mean of the answered draws, with the variance of successive differences and Student's interval.

    ``v = (1 − n/N) / n · Σ (y_i − y_{i−1})² / (2 (n − 1))`` over the draws in the order of the log (Wolter,
    *Introduction to Variance Estimation*, 2007, section 8.2). A sample without a failure has the rule of three as its
    bound: no more than ``3/n`` fails.
    """

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        if sample.draw.design != DESIGN:
            raise InputError(f"this is the estimator of the design {DESIGN!r}; got a draw of {sample.draw.design!r}")
        y, N = self._in_order(sample), sample.draw.frame_size
        n = len(y)
        if not n:
            raise InputError("none of the draws has an answer yet")
        loss, left = float(y.mean()), max(0.0, 1 - n / N)
        error = math.sqrt(left * float((np.diff(y) ** 2).sum()) / (2 * (n - 1) * n)) if n > 1 else None
        reach = left if error is None else float(t.ppf((1 + level) / 2, n - 1)) * error
        if left and not y.min() < y.max():
            reach = max(reach, min(1.0, 3 / n))
        return Estimate(
            value=1 - loss,
            low=1 - loss - reach,
            high=min(1.0, 1 - loss + reach),
            n=len(sample.draw),
            frame_size=N,
            response=sample.response,
            method="systematic/t",
            level=level,
            standard_error=error,
        )

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``1/n`` for every answered draw."""
        return sample.answered / max(int(sample.answered.sum()), 1)

    def _in_order(self, sample: Sample) -> NDArray[np.float64]:
        ordered = sample.outcomes[np.argsort(sample.draw.positions, kind="stable")]
        return ordered[~np.isnan(ordered)]

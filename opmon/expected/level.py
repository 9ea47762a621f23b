"""By how much a calibration is off in each round: a level that walks, seen through noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WALKS = (0.002, 0.01, 0.03, 0.08, 0.2)
"""By how much the level may move from one round to the next: standard deviations, in those of a single loss."""
JUMPS = (0.002, 0.02, 0.06, 0.15)
"""By how much a round may lie off the level, for itself alone."""
FIRST = (0.01, 0.05, 0.25)
"""How far off the level may be before any round."""
UNLIKELY = (6.0, 15.0, 2.0)
"""How much less likely large ones of these are held to be, before any label says otherwise."""


@dataclass(frozen=True)
class Ahead:
    """By how much the next round is expected to be off."""

    mean: float
    variance: float


def ahead(
    offsets: Sequence[float], variances: Sequence[float], numbers: Sequence[int], next_: int, unit: float
) -> Ahead:
    """The offset of round ``next_`` from those measured in the rounds ``numbers`` before it, in their order.

    The offset of round ``s`` is ``b_s + v_s``, measured with an error of known variance; the level walks,
    ``b_s = b_{s-1} + w_s``. How far it walks (``w``), how much single rounds differ (``v``), and where it may begin
    nobody knows: each of a grid of standard deviations is followed by a Kalman filter of its own, which counts as much
    as it has foreseen what came (Bayesian model averaging). ``unit`` is the standard deviation of a single loss.
    """
    walk, jump, first = (each.ravel() for each in np.meshgrid(WALKS, JUMPS, FIRST))
    score = -(UNLIKELY[0] * walk + UNLIKELY[1] * jump + UNLIKELY[2] * first)
    q, tau, variance = ((each * unit) ** 2 for each in (walk, jump, first))
    mean, last = np.zeros(len(q)), None
    for number, offset, noise in zip(numbers, offsets, variances, strict=True):
        variance = variance + (0 if last is None else number - last) * q
        whole = variance + tau + noise
        score = score - 0.5 * (np.log(whole) + (offset - mean) ** 2 / whole)
        gain = variance / whole
        mean, variance, last = mean + gain * (offset - mean), variance * (1 - gain), number
    variance = variance + (0 if last is None else next_ - last) * q
    share = np.exp(score - score.max())
    share /= share.sum()
    centre = float(share @ mean)
    return Ahead(centre, float(share @ (variance + tau + (mean - centre) ** 2)))

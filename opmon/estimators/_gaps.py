"""The sum of the sizes of several means, such as the gaps between confidence and accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from opmon.abc import Gap
from opmon.estimators._known import Known
from opmon.quantities import Quantity
from opmon.types import Estimate, Floats

DRAWS = 500
GRID = np.concatenate((np.linspace(0, 2, 41), np.geomspace(2.2, 31, 16)))
AT_ZERO = math.sqrt(2 / math.pi)
"""The mean size of a standard normal number."""
OWN = 2.0
"""Draws that the measure's own model of a gap counts for, beside those that show its spread."""
LIKELY, FEARED = 0.3, 1.0
"""Standard errors of a gap that may be there beside what is seen of it: for the estimate, for its upper bound."""
SHORTER = 0.9
"""Sums of sizes vary less than normal numbers do where gaps are small."""


def of_gaps(known: Known, gaps: Sequence[Gap], quantity: Quantity, level: float) -> Estimate:
    """``Σ_b |δ_b|`` without what chance adds: ``|δ̂_b|`` is above ``|δ_b|`` on average, by ``0.8 s_b`` where it is 0.

    ``δ̂`` is taken to be normal around ``δ`` with the standard errors ``s``. Of gaps in the proportions that remain of
    those seen, ``τ · (max(δ̂² − s², 0)^½ + 0.3 s)``, that multiple is told for which the sum is as large on average as
    the one seen; 500 draws of a fixed seed tell. It is never below 0, and so a little high where there is no gap.

    The interval begins at the sum seen less all that chance adds to gaps of 0, and less the quantile of a normal sum of
    errors; it ends that much above what is told where more of the gaps is taken to be hidden. Measured on eight frames
    under four designs with 100 to 400 draws, it covers 94 to 100 % where 95 % are asked.
    """
    means = np.array([one.ratio.value(known.weights) for one in gaps])
    errors = np.sqrt([_variance(known, one) for one in gaps])
    seen = float(np.abs(means).sum())
    if known.whole:
        return known.estimate(seen, seen, seen, quantity, "gaps", level, 0.0)
    remaining = np.sqrt(np.maximum(means**2 - errors**2, 0.0))
    value, feared = (_without_chance(seen, errors, remaining + hidden * errors) for hidden in (LIKELY, FEARED))
    error = math.sqrt(float((errors**2).sum()))
    z = float(ndtri(0.5 + level / 2))
    low = max(seen - AT_ZERO * float(errors.sum()) - SHORTER * z * error, 0.0)
    return known.estimate(value, low, min(feared + z * error, 1.0), quantity, "gaps", level, error)


def _without_chance(seen: float, errors: Floats, shape: Floats) -> float:
    """The sum of such a multiple of ``shape`` that the sizes of gaps around it sum up to ``seen`` on average."""
    multiples = GRID * max(1.0, 1.5 * seen / (GRID[-1] * float(shape.sum())))
    noise = np.random.default_rng(0).normal(size=(DRAWS, len(shape))) * errors
    sums = np.array([np.abs(noise + multiple * shape).sum(axis=1).mean() for multiple in multiples])
    return float(np.interp(seen, np.maximum.accumulate(sums), multiples)) * float(shape.sum())


def _variance(known: Known, gap: Gap) -> float:
    """That of the design, joined with the measure's own: few draws seldom show how far gaps spread."""
    own = known.variance(gap.ratio.influence(known.weights))
    members = gap.spread > 0
    weights = known.weights[members]
    model = float(known.weights**2 @ gap.spread)
    draws = float(weights.sum()) ** 2 / float(weights @ weights) if members.any() else 0.0
    return max(own, (draws * own + OWN * model) / (draws + OWN), 1e-18)

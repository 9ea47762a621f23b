"""The sum of the sizes of several means, such as the gaps between confidence and accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from opmon.abc import Gap
from opmon.estimators._known import Known
from opmon.quantities import Quantity
from opmon.types import Estimate, Floats

GRID = np.concatenate((np.linspace(0, 2, 41), np.geomspace(2.2, 31, 16)))
OWN = 2.0
"""Draws that the measure's own model of a gap counts for, beside those that show its spread."""
NEXT, CLEAR, SOFT = 0.75, 3.0, 0.85
"""What a neighbour says of the sign of a gap, beside the gap itself; from how many standard errors on a gap says no
more; over how many the sign turns."""
DOUBT = 2.0
"""Neighbours are trusted to be alike as far as the draws do not show that they differ by more than this."""
MISSED, FADES = 0.1, 0.35
"""What wrong signs take from the sum, in its standard errors: less where gaps are clear."""
FEARED = 1.0
"""Standard errors of a gap that may be there beside what is seen of it, for the upper bound."""
WIDER = 1.1
"""Where gaps are about as large as their errors the estimate spreads up to 1.2 times as much as the means do."""
BELOW = "there is hardly a gap: so that it is right on average, the estimate falls below 0 by chance; read it as 0"


def of_gaps(known: Known, gaps: Sequence[Gap], quantity: Quantity, level: float) -> Estimate:
    """``Σ_b |δ_b|`` as ``Σ_b σ_b δ̂_b`` with signs ``σ_b`` that hardly depend on the errors of ``δ̂_b``.

    ``|δ̂_b|`` is above ``|δ_b|`` on average, because its sign follows the error of ``δ̂_b``. A sign that did not would
    make the sum unbiased but where it is wrong. So the sign is soft, ``m(u) = 2Φ(u/0.85) − 1`` of what the gap and its
    neighbours show together, ``u``, and what it follows of the gap's own error, ``s² ∂m/∂δ̂`` on average (Stein, Ann.
    Stat. 9, 1981), is taken out. What wrong signs take from the sum is added, up to a fifth of a standard error.

    It may be below 0, and a note then says so: no estimate that never is can be right on average where there is no gap.
    Nor can any be right for all gaps: the size has a kink at 0, which takes errors that grow without end to learn (Cai
    and Low, Ann. Stat. 39, 2011). Of gaps of one sign, or of one clear gap, it errs on average by less than half a
    standard error; of many gaps as large as their errors, whose signs alternate from one to the next, it is low by one.

    The interval is that of the sum of the means, 1.1 times as wide, and ends no earlier than that of the multiple of
    the gaps seen, and of one more standard error of each, for which ``Σ |δ̂_b|`` is as large as seen on average.
    """
    means = np.array([one.ratio.value(known.weights) for one in gaps])
    seen = float(np.abs(means).sum())
    if known.whole:
        return known.estimate(seen, seen, seen, quantity, "gaps", level, 0.0)
    errors = np.sqrt([_variance(known, one) for one in gaps])
    value, error = _with_signs(means, errors), math.sqrt(float(errors @ errors))
    z = float(ndtri(0.5 + level / 2))
    remaining = np.sqrt(np.maximum(means**2 - errors**2, 0.0))
    feared = _without_chance(seen, errors, remaining + FEARED * errors)
    high = max(max(value, 0.0) + WIDER * z * error, feared + z * error)
    notes = (BELOW,) if value < 0 else ()
    low = max(value - WIDER * z * error, 0.0)
    return known.estimate(value, low, min(high, 1.0), quantity, "gaps", level, error, notes)


def _with_signs(means: Floats, errors: Floats) -> float:
    """The sum of the means with soft signs, less what these follow of the means' own errors."""
    own = means / errors
    near = np.clip(own, -CLEAR, CLEAR)
    others = _neighbours(near)
    scale = np.sqrt(1 + (others**2).sum(axis=1))
    shown = (own + others @ near) / scale
    turned = shown / SOFT
    slope = np.sqrt(2 / np.pi) * np.exp(-(turned**2) / 2) / (SOFT * scale)
    clear = float((shown**2).mean())
    missed = MISSED * math.sqrt(float(errors @ errors)) * (1 + clear) * math.exp(-FADES * clear)
    return float(means @ (2 * ndtr(turned) - 1) - errors @ slope) + missed


def _neighbours(near: Floats) -> Floats:
    """What each gap says of the sign of every other: ``ρ`` to the power of how far apart they are, 0 of its own.

    ``ρ`` is 0.75 as long as products of neighbours are as large as squares less what chance adds, and less as far as
    they are not: gaps whose signs change from one to the next speak for themselves alone.
    """
    count = len(near)
    if count < 2:
        return np.zeros((count, count))
    together = float(near[1:] @ near[:-1]) * count / (count - 1)
    doubt = DOUBT * math.sqrt(count)
    alike = (together + doubt) / (max(float(near @ near) - count, 0.0) + doubt)
    places = np.arange(count)
    others = (NEXT * min(max(alike, 0.0), 1.0)) ** np.abs(places[:, None] - places)
    np.fill_diagonal(others, 0.0)
    return np.asarray(others)


def _without_chance(seen: float, errors: Floats, shape: Floats) -> float:
    """The sum of such a multiple of ``shape`` that the sizes of gaps around it sum up to ``seen`` on average."""
    multiples = GRID * max(1.0, 1.5 * seen / (GRID[-1] * float(shape.sum())))
    away = multiples[:, None] * (shape / errors)
    sizes = np.sqrt(2 / np.pi) * np.exp(-(away**2) / 2) + away * (2 * ndtr(away) - 1)
    return float(np.interp(seen, sizes @ errors, multiples)) * float(shape.sum())


def _variance(known: Known, gap: Gap) -> float:
    """That of the design, joined with the measure's own: few draws seldom show how far gaps spread."""
    own = known.variance(gap.ratio.influence(known.weights))
    members = gap.spread > 0
    weights = known.weights[members]
    model = float(known.weights**2 @ gap.spread)
    draws = float(weights.sum()) ** 2 / float(weights @ weights) if members.any() else 0.0
    return max(own, (draws * own + OWN * model) / (draws + OWN), 1e-18)

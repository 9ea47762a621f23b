"""The interval of any function of the draws, by a weighted bootstrap."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from opmon.abc import Measure
from opmon.errors import InputError
from opmon.estimators._known import Known
from opmon.quantities import Quantity
from opmon.types import Estimate

DRAWS = 400
FEWEST = 100
"""Of the resamples, so many must give a number."""


def bootstrapped(known: Known, measure: Measure, quantity: Quantity, level: float) -> Estimate:
    """``T̂`` with the interval of ``T*`` over resamples of the draws, cell by cell of the design.

    In a cell ``n − 1`` of ``n`` draws are drawn again, with replacement; a draw that comes ``r`` times counts
    ``1 + √f (r n/(n − 1) − 1)`` times, where ``f`` is what the design leaves of the variance (Rao and Wu, JASA 83,
    1988). The interval joins the percentiles, corrected for bias, with Student's; the same draws give the same one.
    """
    value = measure.value(known.rows, known.weights)
    values, failed = [], 0
    why: InputError | None = None
    for times in resamples(known):
        try:
            values.append(measure.value(known.rows, known.weights * times))
        except InputError as exc:
            failed, why = failed + 1, exc
    if len(values) < FEWEST:
        raise InputError(
            f"{quantity.name} cannot be computed on {failed} of {DRAWS} resamples of the draws: {why}"
        ) from why
    notes = (f"{quantity.name} could not be computed on {failed} of {DRAWS} resamples",) if failed else ()
    resampled = np.array(values)
    error = float(resampled.std(ddof=1))
    if error == 0:
        return known.estimate(value, value, value, quantity, "bootstrap", level, 0.0, (*notes, _ALIKE))
    shift = float(ndtri(np.clip((resampled < value).mean() + (resampled == value).mean() / 2, 0.005, 0.995)))
    z = float(ndtri(0.5 + level / 2))
    low, high = np.quantile(resampled, [ndtr(2 * shift - z), ndtr(2 * shift + z)])
    reach = float(stdtrit(max(known.draws - 1, 2.0), 0.5 + level / 2)) * error
    low, high = min(float(low), value - reach), max(float(high), value + reach)
    if quantity.share:
        low, high = max(low, 0.0), min(high, 1.0)
    return known.estimate(value, low, high, quantity, "bootstrap", level, error, notes)


_ALIKE = "all resamples give the same number: nothing is known of how far it may be off"


def resamples(known: Known) -> NDArray[np.float64]:
    """How often each row counts, one line per resample."""
    count = len(known.rows)
    rng = np.random.default_rng([known.sample.draw.frame_size, count])
    times = np.ones((DRAWS, count))
    cell, left = known.cells
    for one in np.unique(cell):
        inside = np.flatnonzero(cell == one)
        n = len(inside)
        drawn = rng.multinomial(n - 1, np.full(n, 1 / n), size=DRAWS) if n > 1 else np.ones((DRAWS, 1))
        again = drawn * n / (n - 1) if n > 1 else rng.multinomial(1, [0.5, 0.5], size=DRAWS)[:, :1] * 2.0
        times[:, inside] = 1 + math.sqrt(float(left[inside[0]])) * (again - 1)
    return times

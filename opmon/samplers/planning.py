"""How many labels a wanted half-width needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from opmon.errors import InputError
from opmon.types import Estimate, Problem

GAIN = {50: 0.98, 100: 0.98, 200: 0.92, 400: 0.88, 800: 0.86}
"""By budget; see :func:`usual_gain`."""
ENOUGH = 0.9
"""Rounds in which a smaller share of the draws was answered tell nothing of the next plan."""
FEW = 30.0
"""With fewer expected failures the half-width is averaged over their number, else taken at the expected one."""


@dataclass(frozen=True)
class Plan:
    """``budget`` labels give ``half_width`` on average; with simple random sampling it takes ``plain_budget``."""

    budget: int
    half_width: float
    plain_budget: int
    notes: tuple[str, ...] = ()


def plan(
    half_width: float,
    size: int,
    *,
    problem: Problem = "classification",
    accuracy: float | None = None,
    spread: float | None = None,
    variables: int = 1,
    level: float = 0.95,
    gain: float | None = None,
) -> Plan:
    """The least budget whose interval is expected to have at most ``half_width``, for a frame of ``size`` inputs.

    Classification: Wilson's interval with the finite-population correction at the expected ``accuracy`` (without one:
    at 0.5, which needs the most labels). Regression: ``z · spread / sqrt(n) · sqrt(1 − n/N)`` with the standard
    deviation ``spread`` of the squared errors, as an earlier round shows it. With ``variables`` to sample by, the
    adaptive sampler's intervals are ``gain`` times as wide: what earlier rounds show (:func:`gain_of`), else what
    other models showed (:func:`usual_gain`).

    >>> plan(0.05, 100_000, accuracy=0.9).plain_budget
    139
    """
    _check(half_width, size, accuracy, level)
    if problem not in ("classification", "regression"):
        raise InputError(f"the problem is 'classification' or 'regression'; got {problem!r}")
    if gain is not None and not 0 < gain < math.inf:
        raise InputError(f"gain is a width relative to simple random sampling, above 0; got {gain}")
    notes: list[str] = []
    if problem == "classification":
        if accuracy is None:
            notes.append("no accuracy was expected: planned for 0.5, which needs the most labels")
        p = 0.5 if accuracy is None else 1 - accuracy

        def width(n: int) -> float:
            return _wilson_half_width(p, n, size, level)
    else:
        if spread is None or not (spread > 0 and math.isfinite(spread)):
            raise InputError(
                f"planning for regression needs the standard deviation of the squared errors, a number above 0 (an "
                f"earlier round shows it); got spread={spread}"
            )
        deviation = spread

        def width(n: int) -> float:
            z = float(ndtri(0.5 + level / 2))
            return z * deviation / math.sqrt(n) * math.sqrt(max(1 - n / size, 0.0))

        notes.append("for long-tailed errors and small budgets the interval is wider than planned")

    def shorter(n: int) -> float:
        if problem == "regression" or not variables:
            return width(n)
        return width(n) * (usual_gain(n) if gain is None else gain)

    plain = _least(lambda n: width(n) <= half_width, size)
    budget = _least(lambda n: shorter(n) <= half_width, size)
    if budget == size:
        notes.append("only labelling the whole frame is enough")
    return Plan(budget, shorter(budget), plain, tuple(notes))


def usual_gain(n: int) -> float:
    """The half-width of the adaptive sampler relative to simple random sampling at ``n`` draws, on average.

    Half six published classifiers with strong variables, half 20 simulated and scikit-learn ones with weak, misleading
    or no variables among them.
    """
    return float(np.interp(math.log(max(n, 1)), np.log(list(GAIN)), list(GAIN.values())))


def gain_of(estimates: Sequence[Estimate]) -> float | None:
    """How wide the intervals of the adaptive sampler were beside Wilson's at the same budgets; None without any.

    >>> gain_of([Estimate(0.9, 0.88, 0.92, 400, 10_000, 1.0, "adaptive/score")])
    0.69...
    """
    ratios = []
    for found in estimates:
        heard = round(found.n * found.response)
        drawn = found.quantity.share and found.method.startswith("adaptive/score") and not found.provisional
        if drawn and found.response >= ENOUGH and heard < found.frame_size:
            rate = min(max(1 - found.value, 0.0), 1.0)
            plain = _wilson_half_width(rate, heard, found.frame_size, found.level)
            ratios.append(found.half_width / plain)
    return sum(ratios) / len(ratios) if ratios else None


def _check(half_width: float, size: int, accuracy: float | None, level: float) -> None:
    if not half_width > 0:
        raise InputError(f"the half-width is a number above 0, such as 0.03; got {half_width}")
    if size < 1:
        raise InputError(f"a frame has at least one input; got size={size}")
    if accuracy is not None and not 0 <= accuracy <= 1:
        raise InputError(f"the expected accuracy lies in [0, 1], or is left out; got {accuracy}")
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1; got {level}; 0.95 is usual")


def _wilson_half_width(p: float, n: int, size: int, level: float) -> float:
    """The expected half-width of Wilson's interval for ``n`` draws without replacement at failure rate ``p``."""
    if n >= size:
        return 0.0
    z2 = float(ndtri(0.5 + level / 2)) ** 2
    m = n * (size - 1) / (size - n)
    if n * min(p, 1 - p) > FEW:
        rates, weights = np.array([p]), np.ones(1)
    else:
        rare = min(p, 1 - p)
        counts = np.arange(min(n, int(n * rare + 8 * math.sqrt(n * rare) + 8)) + 1)
        rates, weights = counts / n, binom.pmf(counts, n, rare)
    root = np.sqrt(z2 * rates * (1 - rates) / m + z2 * z2 / (4 * m * m)) / (1 + z2 / m)
    centre = (rates + z2 / (2 * m)) / (1 + z2 / m)
    widths = np.minimum(centre + root, 1) - np.maximum(centre - root, 0)
    return float(weights @ widths / weights.sum() / 2)


def _least(enough: Callable[[int], bool], size: int) -> int:
    """The least ``n`` in 1..size with ``enough(n)``, which holds for ``size`` and is monotone."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high

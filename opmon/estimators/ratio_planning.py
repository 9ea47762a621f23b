"""The labels that a ratio such as recall needs for an interval of a wanted width, from what one round tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opmon.estimators.plain_labels import plain_labels
from opmon.estimators.ratio_tallies import ROUGH, Parts, plain_half_width
from opmon.estimators.tally import Tally

STEPS = 16
"""Halvings of the logarithm of a budget, to within 1 in 1,000."""
LEAST = 20


@dataclass(frozen=True)
class RatioPlan:
    """``budget`` labels that aim at the ratio give ``half_width``; simple random sampling takes ``plain_budget``."""

    budget: int
    half_width: float
    plain_budget: int


def plan_ratio(tally: Tally, half_width: float, labels: int, size: int, level: float = 0.95) -> RatioPlan:
    """The least budget, in a frame of ``size`` inputs, whose interval has at most ``half_width``.

    ``tally`` is of a round of ``labels`` answered draws that aimed at the ratio: another budget is taken to divide them
    alike, and to find as much. Simple random sampling: ``z² Σ (n − R d)² / (D h)²``, of the same round, with the
    finite-population correction; by the normal distribution, which takes too few labels for few of a class.
    """
    parts = Parts.of([tally], [1.0])
    few, many = math.log(min(LEAST, size)), math.log(size)
    for _ in range(STEPS):
        middle = (few + many) / 2
        enough = _width(parts, math.exp(middle) / labels, level) <= half_width
        few, many = (few, middle) if enough else (middle, many)
    budget = min(math.ceil(math.exp(many)), size)
    reached = 0.0 if budget == size else _width(parts, budget / labels, level)
    return RatioPlan(budget, reached, plain_labels(tally, half_width, size, level) or size)


def ratio_widths(
    tally: Tally, budgets: Sequence[int], labels: int, size: int, level: float = 0.95
) -> list[tuple[int, float, float]]:
    """Budgets with the half-widths that they give, and that simple random sampling would: see :func:`plan_ratio`."""
    parts = Parts.of([tally], [1.0])
    plain = plain_half_width(parts, level)
    return [
        (n, _width(parts, n / labels, level), plain * math.sqrt(max(1 / n - 1 / size, 0.0)))
        if n < size
        else (n, 0.0, 0.0)
        for n in budgets
    ]


def _width(parts: Parts, many: float, level: float) -> float:
    low, high = replace(parts, m=many * parts.m).bounds(level, 2 * ROUGH)
    return (high - low) / 2

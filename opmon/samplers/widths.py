"""The widths of intervals: those of simple random sampling, and those of the adaptive sampler beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri, xlog1py, xlogy

from opmon.problems import traits
from opmon.types import Estimate, Problem

AIMS = (0.0, 0.25, 0.5, 0.75, 1.0)
SILENT = (1.07, 1.07, 1.1, 1.27, 1.7)
"""By aim: how wide the adaptive sampler's intervals are beside those of simple random sampling, at any budget, where
the variables say nothing of failures."""
TELLING = {
    50: (0.96, 0.96, 0.97, 1.2, 1.57),
    100: (0.92, 0.93, 0.95, 1.12, 1.5),
    200: (0.89, 0.88, 0.9, 1.03, 1.43),
    400: (0.88, 0.86, 0.88, 1.01, 1.34),
    800: (0.85, 0.85, 0.86, 0.97, 1.24),
}
"""By budget and aim: the same where the variables tell as those of six published and three simulated classifiers do.
``tests/benchmarks/plan_promises.py --gains`` measures both again."""
LOSSES = (1.2, 1.2, 1.3, 1.6, 2.4)
"""By aim: the same for squared errors of which the variables say nothing, with long tails."""
ENOUGH = 0.9
"""Rounds in which a smaller share of the draws was answered tell nothing of the next plan."""
FEW = 30.0
"""With fewer expected failures the half-width is averaged over their number, else taken at the expected one."""


def plain_half_width(p: float, n: int, size: int, level: float) -> float:
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
        rates, weights = counts / n, _binomial(counts, n, rare)
    root = np.sqrt(z2 * rates * (1 - rates) / m + z2 * z2 / (4 * m * m)) / (1 + z2 / m)
    centre = (rates + z2 / (2 * m)) / (1 + z2 / m)
    widths = np.minimum(centre + root, 1) - np.maximum(centre - root, 0)
    return float(weights @ widths / weights.sum() / 2)


def _binomial(counts: NDArray[np.int64], n: int, p: float) -> NDArray[np.float64]:
    """The chances of ``counts`` failures among ``n``; written out, because importing scipy.stats takes 0.4 s."""
    ways = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    return np.asarray(np.exp(ways + xlogy(counts, p) + xlog1py(n - counts, -p)))


def gain(n: int, aim: float = 0.5, telling: float = 0.0, problem: Problem = "classification") -> float:
    """The half-width of the adaptive sampler relative to simple random sampling at ``n`` draws, on average.

    >>> gain(200, aim=0.5, telling=1.0), gain(200, aim=1.0)
    (0.9, 1.7)
    """
    if not traits(problem).is_share:
        return float(np.interp(aim, AIMS, LOSSES))
    silent = float(np.interp(aim, AIMS, SILENT))
    by_budget = [float(np.interp(aim, AIMS, row)) for row in TELLING.values()]
    informed = float(np.interp(math.log(max(n, 1)), np.log(list(TELLING)), by_budget))
    return silent + telling * (informed - silent)


def gain_of(estimates: Sequence[Estimate]) -> float | None:
    """The widths of the adaptive sampler's intervals beside Wilson's at the same budgets; None without any.

    >>> gain_of([Estimate(0.9, 0.88, 0.92, 400, 10_000, 1.0, "adaptive/score")])
    0.69...
    """
    ratios = [estimate.half_width / plain for estimate, _, plain in _full_rounds(estimates)]
    return sum(ratios) / len(ratios) if ratios else None


def telling_of(estimates: Sequence[Estimate], aim: float) -> float | None:
    """The worth of the variables in rounds drawn at ``aim``: 0 tells nothing of failures, 1 as much as in other models.

    None without a round that tells. A few rounds tell it roughly: it is kept between −1 and 1.5.
    """
    worths = []
    for estimate, heard, plain in _full_rounds(estimates):
        silent, usual = gain(heard, aim), gain(heard, aim, 1.0)
        worths.append((silent - estimate.half_width / plain) / (silent - usual))
    return min(max(sum(worths) / len(worths), -1.0), 1.5) if worths else None


def spread_of(estimate: Estimate, aim: float, problem: Problem = "regression") -> float | None:
    """The standard deviation of the losses that would make a round's interval as wide as it is; None without.

    Of an interval of the adaptive sampler drawn at ``aim`` what the design does to it is taken out, for :func:`plan`
    puts in what another aim does.
    """
    heard = estimate.answers
    left = 1 - heard / estimate.frame_size
    if heard < 1 or left <= 0 or not 0 < estimate.half_width < math.inf:
        return None
    design = gain(round(heard), aim, 0.0, problem) if estimate.method.startswith("adaptive/") else 1.0
    return estimate.half_width * math.sqrt(heard / left) / float(ndtri(0.5 + estimate.level / 2)) / design


def _full_rounds(estimates: Sequence[Estimate]) -> Iterator[tuple[Estimate, int, float]]:
    """Rounds of the adaptive sampler that were answered: with the answers, and Wilson's half-width for them."""
    for found in estimates:
        heard = round(found.answers)
        drawn = found.method.startswith("adaptive/score") and not found.provisional
        if drawn and found.response >= ENOUGH and heard < found.frame_size:
            rate = min(max(1 - found.value, 0.0), 1.0)
            yield found, heard, plain_half_width(rate, heard, found.frame_size, found.level)

"""The estimate while truths are still to come, and come sooner for some of them than for others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from opmon.errors import InputError
from opmon.estimators.lags import Arrivals
from opmon.problems import is_binary
from opmon.types import Estimate, Floats, Sample

LEAST = 1e-3
"""The least share that a truth counts with: what comes so seldom tells next to nothing yet."""


@dataclass(frozen=True, eq=False)
class Arrived:
    """Of each draw how likely its truth was to have come by now, given what it is; of one without a truth nothing."""

    share: Floats
    variance: Floats
    """Of the logarithm of the share, which was learned."""
    kind: NDArray[np.str_]
    least: float
    """The least share of any kind."""
    known: int = 0
    """The number of lags that this was learned from."""
    horizon: float = np.inf
    """Up to which lag, in hours."""


def arrived(learned: Arrivals, truths: NDArray[np.str_], elapsed: Floats) -> Arrived | None:
    """What was learned, for the truth of each draw, empty where it has not come, and the time since its input; None
    where a truth has come of which nothing like it came before."""
    came = truths != ""
    kinds = {truth: learned.kind(truth) for truth in np.unique(truths[came]).tolist()}
    if None in kinds.values():
        return None
    kind = np.array([kinds.get(truth) or "" for truth in truths.tolist()], dtype=np.str_)
    share, variance = np.ones(len(truths)), np.zeros(len(truths))
    for name, curve in learned.curves.items():
        mine = came & (kind == name)
        share[mine], variance[mine] = curve.share(elapsed[mine]), curve.variance(elapsed[mine])
    middle = np.array([np.median(elapsed)])
    least = max(min(float(curve.share(middle)[0]) for curve in learned.curves.values()), LEAST)
    return Arrived(np.maximum(share, LEAST), variance, kind, least, learned.known, learned.horizon)


def lagged(sample: Sample, weights: Floats, arrived: Arrived, level: float = 0.95) -> Estimate:
    r"""The accuracy from the truths that have come, each weighed by how likely one like it was to have come.

    .. math:: \hat\theta = \frac{\sum_k a_k y_k / \hat F_k}{\sum_k a_k / \hat F_k}

    over the draws whose truth has come, with the design's weights :math:`a_k` of all draws and the share
    :math:`\hat F_k` of truths like this one that come so soon (:mod:`opmon.estimators.lags`). Hájek's estimator, and
    consistent where the lag depends on the truth and on nothing else, and is what it was before; a share that never
    comes does not bias it where it is the same of all kinds.

    Because the weights depend on the answer, the interval is that of the odds: the exact binomial one of wrong and
    right answers in their effective numbers :math:`(\sum w)^2 / \sum w^2`, times the ratio of their mean weights, wider
    by what is not known of :math:`\hat F`. It makes no use of strata or of how small the frame is.

    >>> from opmon.types import Draw
    >>> draw = Draw("srs", 1000, np.arange(8), constants={"replacement": np.array(False)})
    >>> answers = np.array([1.0, 0, 0, 0, 0, np.nan, np.nan, np.nan])
    >>> kind = np.array(["fraud"] + 4 * ["none"] + 3 * [""])
    >>> share = np.array([0.25] + 4 * [1.0] + 3 * [1.0])
    >>> lagged(Sample(draw, answers), np.full(8, 1 / 8), Arrived(share, np.zeros(8), kind, 0.25)).value
    0.5
    """
    if not is_binary(sample.outcomes[sample.answered], sample.problem):
        raise InputError("the lag of a number cannot be told by its kind: this is for classifications")
    came = sample.answered & (weights > 0)
    if not came.any():
        raise InputError("no truth of a draw has come yet")
    wrong = came & (sample.outcomes == 1)
    weight = weights / np.maximum(arrived.share, LEAST)
    both = [_Side.of(weight[mine], arrived, mine) for mine in (wrong, came & ~wrong)]
    heaviest = float(weights[came].max()) / max(arrived.least, LEAST)
    low, high = _odds(both[0], both[1], heaviest, level)
    z = float(special.ndtri(0.5 + level / 2))
    value = both[0].total / (both[0].total + both[1].total)
    low, high = _wider(value, low, high, z * np.sqrt(_spread(both[0], both[1], arrived, came)))
    return Estimate(
        1 - value,
        1 - min(max(high, value), 1.0),
        1 - max(min(low, value), 0.0),
        n=len(sample.draw),
        frame_size=sample.draw.frame_size,
        response=float(came.mean()),
        method=f"{sample.draw.design}/lags",
        level=level,
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """The answers of one side, wrong or right."""

    total: float
    effective: float
    by_kind: dict[str, float]
    """The share of the weight that each kind has."""

    @classmethod
    def of(cls, weight: Floats, arrived: Arrived, mine: NDArray[np.bool_]) -> _Side:
        total = float(weight.sum())
        if not total:
            return cls(0.0, 0.0, {})
        kinds = arrived.kind[mine]
        shares = {str(name): float(weight[kinds == name].sum()) / total for name in np.unique(kinds)}
        return cls(total, total**2 / float((weight**2).sum()), shares)

    def mean(self, heaviest: float) -> float:
        """The mean weight; of a side without an answer the largest that there could be."""
        return self.total / self.effective if self.effective else heaviest


def _odds(wrong: _Side, right: _Side, heaviest: float, level: float) -> tuple[float, float]:
    """The bounds of the loss without what is not known of the shares."""
    tail, x, rest = (1 - level) / 2, wrong.effective, right.effective
    ratio = wrong.mean(heaviest) / right.mean(heaviest)
    low = 0.0 if not x else float(special.betaincinv(x, rest + 1, tail))
    high = 1.0 if not rest else float(special.betaincinv(x + 1, rest, 1 - tail))
    return _scaled(low, ratio), _scaled(high, ratio)


def _scaled(share: float, ratio: float) -> float:
    """The share with the odds times ``ratio``."""
    return share * ratio / (share * ratio + 1 - share)


def _spread(wrong: _Side, right: _Side, arrived: Arrived, came: NDArray[np.bool_]) -> float:
    """The variance of the logarithm of the odds by what is not known of the shares."""
    of = {
        str(name): float(arrived.variance[came & (arrived.kind == name)].mean())
        for name in np.unique(arrived.kind[came])
    }
    if not (wrong.by_kind and right.by_kind):
        return max(of.values())
    return sum((wrong.by_kind.get(name, 0.0) - right.by_kind.get(name, 0.0)) ** 2 * each for name, each in of.items())


def _wider(value: float, low: float, high: float, reach: float) -> tuple[float, float]:
    """The bounds, wider by ``reach`` in the logarithm of the odds."""

    def moved(bound: float, sign: int) -> float:
        if not 0 < bound < 1:
            return bound
        own = special.logit(bound)
        if not 0 < value < 1:
            return float(special.expit(own + sign * reach))
        return float(special.expit(special.logit(value) + sign * np.hypot(own - special.logit(value), reach)))

    return moved(low, -1), moved(high, 1)

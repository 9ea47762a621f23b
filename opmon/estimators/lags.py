"""How soon truths arrive, by what they are, from the lags of those that have come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.types import Floats

FEWEST = 30
"""The lags from which the arrival of one kind of truth is learned; rarer kinds are taken together."""
OTHERS = ""
"""The kinds that are taken together."""
RISK = 20
"""Up to where it is learned: as long as so many of a kind were watched for longer."""


@dataclass(frozen=True, eq=False)
class Curve:
    r"""The share of truths of one kind that come within a time, of those that come within the ``horizon``.

    A truth is known only where its lag is shorter than the time it was watched for: the lags are truncated. Of truths
    watched for at least :math:`x`, the share with the lag :math:`x` among those of at most :math:`x` is an unbiased
    reverse hazard, and

    .. math:: \hat F(e) = \prod_{x > e} \Big(1 - \frac{d(x)}{n(x)}\Big), \qquad
        n(x) = \#\{\text{lag} \le x \le \text{watched}\},

    with :math:`\operatorname{Var}\log\hat F(e) = \sum_{x > e} d/(n(n - d))` (Kalbfleisch and Lawless, Journal of the
    American Statistical Association 84, 1989). Truths that never come have no part in it.
    """

    lags: Floats
    factors: Floats
    """The logarithm of ``F`` behind each lag, and before the first."""
    variances: Floats

    @classmethod
    def of(cls, lags: Floats, watched: Floats, horizon: float) -> Curve:
        """From lags, each with the time that its truth was watched for."""
        inside = lags <= horizon
        ordered, until = np.sort(lags[inside]), np.sort(watched[inside])
        distinct, d = np.unique(ordered, return_counts=True)
        at_risk = np.searchsorted(ordered, distinct, side="right") - np.searchsorted(until, distinct, side="left")
        n = np.maximum(at_risk, d) + 0.5  # half a truth that came before: a share is never quite 0
        log, variance = np.log1p(-d / n), d / (n * (n - d))
        later = np.cumsum(log[::-1])[::-1], np.cumsum(variance[::-1])[::-1]
        return cls(distinct, np.append(later[0], 0.0), np.append(later[1], 0.0))

    def share(self, elapsed: Floats) -> Floats:
        """The share that comes within these times."""
        return np.asarray(np.exp(self.factors[np.searchsorted(self.lags, elapsed, side="right")]))

    def variance(self, elapsed: Floats) -> Floats:
        """The variance of the logarithm of :meth:`share`."""
        return np.asarray(self.variances[np.searchsorted(self.lags, elapsed, side="right")])


@dataclass(frozen=True, eq=False)
class Arrivals:
    """How soon each kind of truth comes."""

    curves: dict[str, Curve]
    known: int
    """The lags that it was learned from."""
    horizon: float

    @classmethod
    def learned(cls, lags: Floats, watched: Floats, kinds: NDArray[np.str_]) -> Arrivals | None:
        """From the truths that have come; None where they are too few to tell one kind from another."""
        lags = np.clip(lags, 0.0, None)
        watched = np.maximum(watched, lags)
        names, counts = np.unique(kinds, return_counts=True)
        often = names[counts >= FEWEST]
        grouped = np.where(np.isin(kinds, often), kinds, OTHERS)
        groups, sizes = np.unique(grouped, return_counts=True)
        if not len(often) or len(groups) < 2 or sizes.min() < FEWEST:
            return None
        horizon = min(float(np.sort(watched[grouped == name])[-RISK]) for name in groups)
        curves = {
            str(name): Curve.of(lags[mine], watched[mine], horizon)
            for name in groups
            if (mine := grouped == name).any()
        }
        return cls(curves, len(lags), horizon)

    def kind(self, truth: str) -> str | None:
        """Among which kind a truth counts; None where nothing like it has come before."""
        return truth if truth in self.curves else OTHERS if OTHERS in self.curves else None

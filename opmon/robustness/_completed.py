"""Predictions of how inputs fare under tests that did not look at them, from the tests that did.

Row t of a table holds the outcomes z_ti of test t on input i, with holes. Inputs are taken as draws from a normal
distribution of columns with mean μ (the shares) and covariance K over tests, so that a hole is filled with

    E[z_ti | what input i did] = μ_t + K_to K_oo⁻¹ (z_oi − μ_o),        o the tests that looked at input i,

μ and K by expectation-maximisation, K with ν pseudo-inputs of prior covariance exp(−Σ_j |s_j − s'_j| / m). r̂_t is the
mean of the filled row: where every test looked at the same inputs it is the regression estimator; where tests looked at
different ones, each input is known from tests all over the space, and errors hardly go together. The errors of two rows
have the covariance Σ_i r_ti r_ui / (n_t n_u) over the inputs that both looked at, r_ti = [K_oo⁻¹ (z_oi − μ_o)]_t /
[K_oo⁻¹]_tt the residuals of entries left out one by one, times √((1 − n_t/N)(1 − n_u/N)) and an inflation for K being
fitted to the same entries.

References: Little and Rubin, Statistical Analysis with Missing Data, chapter 11; Dempster, Laird and Rubin, 1977.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from opmon.robustness.space import Tests
from opmon.types import Floats

_PSEUDO, _NUGGET, _INFLATION, _NEAR = 30.0, 1e-3, 1.4, 5e-4


@dataclass(frozen=True, eq=False)
class Completed:
    """``values`` as observed where they were, as expected elsewhere; ``variance`` of each entry (0 where observed);
    ``mean`` by row, the covariance of its errors as ``noise``; ``covariance`` of rows over inputs; ``own`` is the mean
    square of the residuals: what an input does under one test and no other test tells."""

    values: Floats
    variance: NDArray[np.float32]
    mean: Floats
    noise: Floats
    covariance: Floats
    own: float

    @property
    def error(self) -> Floats:
        """The standard error of each mean; 0 where all inputs were looked at."""
        return np.asarray(np.sqrt(np.diag(self.noise)))

    def take(self, count: int) -> Completed:
        """The first rows."""
        return Completed(
            self.values[:count], self.variance[:count], self.mean[:count],
            self.noise[:count, :count], self.covariance[:count, :count], self.own,
        )  # fmt: skip


def completed(table: Floats, prior: Floats, weights: Floats, start: Floats, rounds: int = 15) -> Completed:
    """``table`` (NaN: not looked) completed; ``prior`` are correlations of its rows, ``start`` a first mean of each."""
    order, patterns = _patterns(np.isfinite(table))
    back = np.argsort(order, kind="stable")
    table, weights = table[:, order], weights[order] * (len(order) / weights.sum())
    known = np.isfinite(table)
    values, mean = np.where(known, table, start[:, None]), start.copy()
    apart = np.where(known, values - mean[:, None], 0) ** 2
    scale = np.maximum(apart.sum(axis=1) / np.maximum(known.sum(axis=1), 1), 1e-3)
    covariance = prior * np.sqrt(np.outer(scale, scale))
    total = weights.sum()
    for _ in range(rounds if (~known).any() else 1):
        left = np.zeros_like(covariance)
        for inputs, seen, open_ in patterns:
            gain, rest = _conditional(covariance, seen, open_)
            block = values[:, inputs]
            block[open_] = mean[open_, None] + gain @ (block[seen] - mean[seen, None])
            left[np.ix_(open_, open_)] += weights[inputs].sum() * rest
        before, mean = mean, values @ weights / total
        centred = values - mean[:, None]
        scatter = (centred * weights) @ centred.T + left
        scale = np.maximum(np.diag(scatter) / total, 1e-6)
        covariance = (scatter + _PSEUDO * prior * np.sqrt(np.outer(scale, scale))) / (total + _PSEUDO)
        if np.abs(mean - before).max() < _NEAR:
            break
    variance = np.zeros(table.shape, np.float32)
    for inputs, seen, open_ in patterns:
        variance[open_, inputs] = np.diag(_conditional(covariance, seen, open_)[1])[:, None]
    noise, own = _noise(values, known, mean, covariance, weights, patterns)
    return Completed(values[:, back], variance[:, back], mean, noise, covariance, own)


def similar(tests: Tests, levels: int) -> Floats:
    """The prior correlation of tests: the less, the further their severities (and orders of application) are apart."""
    places = tests.severities / levels
    apart = cdist(places, places, "cityblock")
    turned = np.zeros(apart.shape, np.bool_)
    for rank in tests.ranks.T:  # one by one: a table of tests × tests is large enough
        turned |= rank[:, None] != rank[None]
    np.add(apart, 0.2, out=apart, where=turned)
    return np.asarray(np.exp(np.negative(apart, out=apart), out=apart))


_Pattern = tuple[slice, NDArray[np.int64], NDArray[np.int64]]


def _patterns(known: NDArray[np.bool_]) -> tuple[NDArray[np.int64], list[_Pattern]]:
    """An order of inputs in which those that the same rows looked at stand together; and (inputs in that order, rows
    that looked at them, rows that did not) for each set of rows."""
    packed = np.packbits(known, axis=0).T
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel())).tolist()
    patterns = []
    for start, stop, example in zip([0, *ends], ends, first.tolist(), strict=False):
        seen = known[:, example]
        patterns.append((slice(start, stop), np.flatnonzero(seen), np.flatnonzero(~seen)))
    return order, patterns


def _conditional(covariance: Floats, seen: NDArray[np.int64], open_: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """(regression of the open rows on those seen, covariance that it leaves)."""
    across, rest = covariance[np.ix_(open_, seen)], covariance[np.ix_(open_, open_)]
    if not len(open_):
        return across, rest
    gain = np.asarray(np.linalg.solve(covariance[np.ix_(seen, seen)] + _NUGGET * np.eye(len(seen)), across.T).T)
    return gain, np.asarray(rest - gain @ across.T)


def _noise(
    values: Floats, known: NDArray[np.bool_], mean: Floats, covariance: Floats, weights: Floats,
    patterns: list[_Pattern],
) -> tuple[Floats, float]:  # fmt: skip
    """The covariance of the errors of the means, and the mean square of the residuals."""
    residual, looked = np.zeros(values.shape), np.maximum(known.sum(axis=1), 1)
    for inputs, seen, _ in patterns:
        inverse = np.linalg.inv(covariance[np.ix_(seen, seen)] + _NUGGET * np.eye(len(seen)))
        left_out = inverse @ (values[seen, inputs] - mean[seen, None]) / np.diag(inverse)[:, None]
        residual[seen, inputs] = left_out * weights[inputs]
    own = _INFLATION * float((residual**2).sum() / (known @ weights**2).sum())
    left = np.sqrt(np.maximum(1 - looked / known.shape[1], 0))
    residual *= (_INFLATION * left / np.maximum(known @ weights, 1e-12))[:, None]
    return np.asarray(residual @ residual.T + np.diag((0.5 / looked * left) ** 2)), own

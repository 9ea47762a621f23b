"""A model of failure by the auxiliary variables: their codes and ranks, and the outcomes seen so far.

Every variable is turned into a code whose order is the variable's order: the leading bits of a float32 are logarithmic
bins (64 to a factor of two), so any scale will do. What follows are tables by code: the rank of a code, the features
of a rank, what a code adds to a score. An additive score of N inputs is then one look-up per variable and input,
without a sort and without a column of floats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon._ridge import fit
from opmon.problems import is_binary
from opmon.samplers._checks import auxiliary, chunks
from opmon.types import Frame, Numbers, Positions, Sample

SHIFT = 17
CODES = 1 << 32 - 1 - SHIFT
GLIMPSE = 4_000
"""Values looked at to choose where the codes of a variable begin."""
TAIL = 5.0
"""The tail feature −log(1 − rank) stops here: no extrapolation into the last 0.7 % of a variable."""
FEATURES = 2
"""Features per variable: rank, and its tail."""
SLOPE = 0.5
"""The prior of the coefficients of all variables together, before any label; see :func:`learned`."""
LARGEST = 20.0
"""Losses are cut at this multiple of their mean in the model (not in the estimate): one loss must not rule it."""

Table = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Variable:
    """One auxiliary variable of a frame, coded: ``code = leading bits of float32((χ − low) / spread)``.

    ``present`` are the codes that occur, in order, ``counts`` how often.
    """

    values: Numbers
    low: float
    spread: float
    present: NDArray[np.int64]
    counts: NDArray[np.int64]

    def codes(self, part: slice | Positions) -> NDArray[np.uint32]:
        return _code(self.values[part], self.low, self.spread)

    def ranks(self) -> Numbers:
        """The mid-rank of every code present, in (0, 1)."""
        return np.asarray((np.cumsum(self.counts) - self.counts / 2) / self.counts.sum())

    def magnitudes(self) -> Numbers:
        """The size of every code present relative to the mean, cut at the 99.95 % quantile: what PPS would use."""
        middle = (self.present.astype(np.uint32) << SHIFT | 1 << SHIFT - 1).view(np.float32).astype(np.float64)
        middle = np.where(self.present == 0, 0.0, middle)
        top = np.searchsorted(np.cumsum(self.counts), 0.9995 * self.counts.sum())
        value = np.minimum(middle, middle[top])
        total = float(self.counts @ value)
        return np.asarray(value * (self.counts.sum() / total)) if total > 0 else np.ones(len(value))

    def table(self, contribution: Numbers) -> Table:
        """A look-up by code of one number per code present."""
        table = np.zeros(CODES, dtype=np.float32)
        table[self.present] = contribution
        return table


def coded(frame: Frame, names: tuple[str, ...]) -> list[Variable]:
    """The variables of ``frame`` that differ at all; each checked to be finite and not negative."""
    variables = []
    for name in names:
        values = auxiliary(frame, name)
        glimpse = np.sort(np.asarray(values[:: max(frame.size // GLIMPSE, 1)], dtype=np.float64))
        low, high = float(glimpse[int(0.001 * len(glimpse))]), float(glimpse[int(0.99 * (len(glimpse) - 1))])
        spread = high - low or max(abs(low), 1.0)
        counts = np.zeros(CODES, dtype=np.int64)
        for part in chunks(frame.size):
            counts += np.bincount(_code(values[part], low, spread), minlength=CODES)
        present = np.flatnonzero(counts)
        if len(present) > 1:
            variables.append(Variable(values, low, spread, present, counts[present]))
    return variables


def prior(variables: list[Variable]) -> list[Numbers]:
    """The prediction before any label: the mean over the variables of the density that PPS would use."""
    return [v.magnitudes() / len(variables) for v in variables]


def learned(variables: list[Variable], sample: Sample) -> tuple[list[Numbers], bool]:
    """The prediction by the labels so far: parts of the log odds of failure or the log loss; whether outcomes are 0/1.

    Ridge regression on rank and tail of every variable. The coefficients are drawn towards ``SLOPE`` divided by the
    number of variables, with a precision equal to that number: a few labels do not overthrow what the variables are
    made for, a hundred do.
    """
    seen = sample.answered
    y = sample.outcomes[seen]
    binary = is_binary(y, sample.problem)
    if not variables or not len(y) or (not binary and not y.any()):
        return [np.zeros(len(v.present)) for v in variables], binary
    if not binary:
        y = np.minimum(y / y.mean(), LARGEST)
    X = design_matrix(variables, sample.draw.positions[seen])
    beta = fit(X, y, np.full(X.shape[1], SLOPE / len(variables)), float(len(variables)), binary)
    return contributions(variables, beta), binary


def features(ranks: Numbers) -> Numbers:
    """Rank and tail of ranks in (0, 1), each with mean 0 and standard deviation about 1; shape (2, …)."""
    return np.stack([(ranks - 0.5) * np.sqrt(12.0), np.minimum(-np.log1p(-ranks), TAIL) - 1.0])


def design_matrix(variables: list[Variable], positions: Positions) -> Numbers:
    """One row per position: 1, then the features of every variable."""
    columns: list[Numbers] = [np.ones((1, len(positions)))]
    columns += [features(v.ranks()[np.searchsorted(v.present, v.codes(positions))]) for v in variables]
    return np.concatenate(columns).T


def contributions(variables: list[Variable], beta: Numbers) -> list[Numbers]:
    """The part of every code present in ``β₀ + Σ_j Σ_k β_jk f_k(rank_j)``; the constant is in the first variable's."""
    parts: list[Numbers] = [beta[1 + FEATURES * j :][:FEATURES] @ features(v.ranks()) for j, v in enumerate(variables)]
    parts[0] = parts[0] + beta[0]
    return parts


def scores(variables: list[Variable], tables: list[Table], part: slice) -> Table:
    """The additive score of the inputs in ``part``."""
    total = tables[0][variables[0].codes(part)]
    for variable, table in zip(variables[1:], tables[1:], strict=True):
        total = total + table[variable.codes(part)]
    return total


def _code(values: Numbers, low: float, spread: float) -> NDArray[np.uint32]:
    with np.errstate(over="ignore"):
        scaled = ((np.asarray(values, dtype=np.float64) - low) / spread).astype(np.float32)
    return np.asarray(np.maximum(scaled, np.float32(0)).view(np.uint32) >> SHIFT, dtype=np.uint32)

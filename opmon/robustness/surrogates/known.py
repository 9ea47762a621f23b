"""The tests that were measured, found by what they apply: what all surrogates begin with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.robustness._completed import Completed, completed, similar
from opmon.robustness.measured import Measured
from opmon.robustness.space import Step, Tests
from opmon.types import Floats

_BESIDE = 12
FLOOR = 1e-3
"""Shares are kept above it before a logarithm is taken."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """One value per test with its prediction interval; ``error`` is its standard deviation."""

    value: Floats
    error: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Known:
    """The measured tests, all of order 0, 1 and 2 among them, with what they say about inputs they did not look at.

    ``outcomes`` has a row for each measured test, ``margins`` for those of order ≤ 2 (None: the model gives no scores),
    as tanh(margin / 4).
    """

    measured: Measured
    outcomes: Completed
    margins: Completed | None

    @classmethod
    def of(cls, measured: Measured, levels: int, earlier: Known | None = None) -> Known:
        """``measured`` with its holes filled, and the shares that follow. ``earlier``: known before some of the tests
        beyond pairs were run."""
        weights = np.ones(measured.right.shape[1]) if measured.weights is None else measured.weights
        shares, outcomes, beside = completed_shares(measured, levels)
        count = int((measured.tests.order <= 2).sum())
        if measured.margin is None:
            return cls(shares, outcomes, None)
        if earlier is not None and np.array_equal(earlier.measured.seen[:count], measured.seen[:count]):
            return cls(shares, outcomes, earlier.margins)
        margins = _bounded(measured.margin[:count])
        first = np.array([np.nanmean(row) for row in margins])
        return cls(
            shares, outcomes, _filled(measured.tests.take(slice(count)), margins, beside[:0], first, weights, levels)
        )

    @cached_property
    def common(self) -> NDArray[np.int64]:
        """The inputs that all tests of order ≤ 2 looked at."""
        low = self.measured.tests.order <= 2
        return np.flatnonzero((self.measured.right[low] >= 0).all(axis=0))

    @cached_property
    def controls(self) -> tuple[Floats, Floats]:
        """(kinds × tests of order ≤ 2 × inputs, means over all inputs): outcomes, and margins where there are some."""
        count = int((self.measured.tests.order <= 2).sum())
        outcomes, share = self.outcomes.values[:count], self.measured.share[:count]
        if self.margins is None:
            return outcomes[None], share[None]
        return np.stack([outcomes, self.margins.values]), np.stack([share, self.margins.mean])

    @cached_property
    def rows(self) -> Mapping[tuple[Step, ...], int]:
        return {key: row for row, key in enumerate(self.measured.tests.chains())}

    def row(self, steps: tuple[Step, ...]) -> int:
        try:
            return self.rows[steps]
        except KeyError:
            raise InputError(
                f"surrogates need all tests of order 0, 1 and 2; {steps} (perturbation, severity) was not run"
            ) from None

    def parts(self, tests: Tests) -> Iterator[tuple[list[int], list[tuple[int, int, int]]]]:
        """For each test the rows of its single perturbations, and (first, second, row) of its pairs, first and second
        being places among the singles."""
        for position in range(len(tests)):
            steps = tests.steps(position)
            singles = [self.row((step,)) for step in steps]
            pairs = [(a, b, self.row((steps[a], steps[b]))) for a, b in itertools.combinations(range(len(steps)), 2)]
            yield singles, pairs


def completed_shares(measured: Measured, levels: int) -> tuple[Measured, Completed, Floats]:
    """``measured`` with the shares that follow where holes are filled; the filled table; and what helped to fill it."""
    weights = np.ones(measured.right.shape[1]) if measured.weights is None else measured.weights
    partial = measured.seen < measured.right.shape[1]
    table = np.where(measured.right >= 0, measured.right, np.nan)
    beside = np.empty((0, table.shape[1]))
    if measured.margin is not None:
        beside = _bounded(measured.margin[np.flatnonzero(~partial & (measured.tests.order <= 2))[:_BESIDE]])
    outcomes = _filled(measured.tests, table, beside, measured.share, weights, levels)
    share = np.where(partial, outcomes.mean, measured.share)
    error = np.where(partial, outcomes.error, measured.error)
    return measured.with_shares(share, error), outcomes, beside


def _bounded(margin: NDArray[np.float32]) -> Floats:
    return np.tanh(margin.astype(np.float64) / 4)


def _filled(tests: Tests, table: Floats, beside: Floats, start: Floats, weights: Floats, levels: int) -> Completed:
    """``table`` completed with the help of the whole rows ``beside`` it."""
    n = len(table)
    prior = np.eye(n + len(beside))
    prior[:n, :n] = similar(tests, levels)
    everything = np.concatenate([table, beside])
    whole = completed(everything, prior, weights, np.concatenate([start, beside.mean(axis=1)]))
    return whole.take(n)

"""What surrogates share: the tests that were measured, found by what they apply."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.robustness.anchors_core import Anchors
from opmon.robustness.measured import Measured
from opmon.robustness.space import Step, Tests

Floats = NDArray[np.float64]
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
    """The measured tests; all of order 0, 1 and 2 are among them."""

    measured: Measured
    anchors: Anchors

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

"""The space of combined perturbations: which tests there are, and what is said of one.

A test σ = (s_1, …, s_k) gives each of k perturbations a severity 0..m; 0 leaves the input as it is. Its **order** is
the number of non-zero severities, its **severity sum** Σ s_j. In an ordered space A∘B and B∘A are two tests.

Reference: Arif et al., TestifAI, ICSE 2026, section 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError

MOST_TESTS = 1_000_000
MOST_PAIRED = 5000
"""The most tests of one and two perturbations. All of them are run, and memory grows with the square of their number:
several tables of 200 MB."""
Step = tuple[int, int]
"""One perturbation of a test: its number in the space, and its severity."""


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """Tests as rows of numbers. ``ranks``: in which order the perturbations are applied: 1 is first, 0 not at all."""

    __test__ = False
    severities: NDArray[np.int8]
    ranks: NDArray[np.int8]

    def __post_init__(self) -> None:
        if self.severities.shape != self.ranks.shape or self.severities.ndim != 2:
            raise InputError(
                f"severities and ranks are tables of the same shape; got {self.severities.shape}, {self.ranks.shape}"
            )

    def __len__(self) -> int:
        return len(self.severities)

    @property
    def order(self) -> NDArray[np.int64]:
        """The number of perturbations that each test applies."""
        return np.asarray(np.count_nonzero(self.severities, axis=1), np.int64)

    @property
    def severity_sum(self) -> NDArray[np.int64]:
        return np.asarray(self.severities.sum(axis=1, dtype=np.int64))

    def take(self, which: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_] | slice) -> Tests:
        """The tests at these positions, or where the mask is true."""
        return Tests(self.severities[which], self.ranks[which])

    def steps(self, position: int) -> tuple[Step, ...]:
        """The steps that one test applies, in their order."""
        severities, ranks = self.severities[position], self.ranks[position]
        active = np.flatnonzero(severities)
        return tuple((int(j), int(severities[j])) for j in active[np.argsort(ranks[active], kind="stable")])

    def chains(self) -> list[tuple[Step, ...]]:
        """:meth:`steps` of every test: two tests are the same where their chains are."""
        return [self.steps(position) for position in range(len(self))]

    def __add__(self, other: Tests) -> Tests:
        return Tests(np.concatenate([self.severities, other.severities]), np.concatenate([self.ranks, other.ranks]))


@dataclass(frozen=True, slots=True)
class Space:
    """All tests over ``names`` with severities 0..``levels``, of order at most ``max_order`` (all of them: None).

    >>> space = Space(("zoom", "blur", "noise"))
    >>> space.size, len(space.tests(0, 2))
    (216, 91)
    """

    names: tuple[str, ...]
    levels: int = 5
    ordered: bool = False
    max_order: int | None = None

    def __post_init__(self) -> None:
        if not self.names:
            raise InputError("a space has at least one perturbation")
        twice = next((name for name in self.names if self.names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"each perturbation stands once in a space; {twice!r} stands twice: give one another name")
        if not 1 <= self.levels <= 100:
            raise InputError(f"levels must lie in 1..100; got {self.levels}")
        if self.max_order is not None and not 1 <= self.max_order <= len(self.names):
            raise InputError(f"max_order must lie in 1..{len(self.names)}; got {self.max_order}")
        if self.size > MOST_TESTS:
            raise InputError(
                f"{len(self.names)} perturbations with {self.levels} severities up to order {self.highest} make "
                f"{self.size:,} tests; at most {MOST_TESTS:,} are kept: give a lower max_order, or fewer perturbations"
            )

    @property
    def highest(self) -> int:
        """The highest order there is."""
        return self.max_order or len(self.names)

    @property
    def size(self) -> int:
        """The number of tests: Σ_o C(k, o)·m^o, and times o! where the space is ordered."""
        return sum(self.count(order) for order in range(self.highest + 1))

    def count(self, order: int) -> int:
        """The number of tests of one order."""
        arrangements = math.perm if self.ordered else math.comb
        return int(arrangements(len(self.names), order) * self.levels**order)

    def check_runs(self) -> None:
        """Raise an error where there are more tests of order ≤ 2 than can be run; results of as many can be read."""
        paired = sum(self.count(order) for order in range(min(self.highest, 2) + 1))
        if paired > MOST_PAIRED:
            raise InputError(
                f"{len(self.names)} perturbations with {self.levels} severities make {paired:,} tests of one and two, "
                f"all of which are run; at most {MOST_PAIRED:,} can be: name fewer perturbations, or say max_order: 1"
            )

    def tests(self, low: int = 0, high: int | None = None) -> Tests:
        """The tests with an order from ``low`` to ``high``, lowest order first."""
        high = self.highest if high is None else min(high, self.highest)
        by_order = [tests for order in range(low, high + 1) for tests in self._of_order(order)]
        if not by_order:
            empty = np.empty((0, len(self.names)), np.int8)
            return Tests(empty, empty.copy())
        return Tests(np.concatenate([t.severities for t in by_order]), np.concatenate([t.ranks for t in by_order]))

    def of(self, chains: Sequence[Sequence[Step]]) -> Tests:
        """The tests that apply these (perturbation, severity) steps one after the other."""
        severities = np.zeros((len(chains), len(self.names)), np.int8)
        ranks = np.zeros_like(severities)
        for row, chain in enumerate(chains):
            for rank, (which, severity) in enumerate(chain, start=1):
                severities[row, which], ranks[row, which] = severity, rank
        return Tests(severities, ranks)

    def label(self, steps: Sequence[Step]) -> str:
        """A test in words.

        >>> Space(("zoom", "blur")).label([(0, 3), (1, 1)])
        'zoom 3 + blur 1'
        """
        arrow = " → " if self.ordered else " + "
        return arrow.join(f"{self.names[j]} {severity}" for j, severity in steps) or "unperturbed"

    def _of_order(self, order: int) -> Iterator[Tests]:
        k = len(self.names)
        arrange = itertools.permutations if self.ordered else itertools.combinations
        values = np.array(list(itertools.product(range(1, self.levels + 1), repeat=order)), np.int8)
        values = values.reshape(self.levels**order, order)
        for chosen in arrange(range(k), order):
            severities = np.zeros((len(values), k), np.int8)
            ranks = np.zeros_like(severities)
            severities[:, list(chosen)] = values
            ranks[:, list(chosen)] = np.arange(1, order + 1, dtype=np.int8)
            yield Tests(severities, ranks)

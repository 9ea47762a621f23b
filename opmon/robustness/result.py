"""A tomography as it is kept: every test with its share, measured or predicted, ready to be asked."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from opmon.errors import InputError
from opmon.robustness.outcomes import Outcomes
from opmon.robustness.query.conditions import Condition
from opmon.robustness.query.named import question
from opmon.robustness.query.parse import parse
from opmon.robustness.space import Space, Tests
from opmon.types import Array, Document, Floats

_MOST_IN_COVARIANCE = 1500


@dataclass(frozen=True, slots=True)
class Case:
    """One test of an answer."""

    label: str
    share: float
    low: float
    high: float
    measured: bool
    quality: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """R(Q): the mean share over the tests that a question asks about.

    ``low`` and ``high`` hold it on the inputs of the tomography; ``population_low`` and ``population_high`` add that
    those inputs are a sample of production.
    """

    question: str
    value: float
    low: float
    high: float
    population_low: float
    population_high: float
    level: float
    measured: int
    predicted: int
    quality: float | None
    worst: tuple[Case, ...]

    @property
    def tests(self) -> int:
        return self.measured + self.predicted


@dataclass(frozen=True, eq=False)
class Tomography:
    """All tests of a space: share, standard error, interval, and whether it was measured (``seen`` inputs > 0).

    ``shared`` is the part of each error that all tests have in common; ``quality`` is there where one was asked for.
    ``facts`` say in plain values how it was made; ``outcomes`` are there where the inputs are known by name.
    """

    space: Space
    tests: Tests
    share: Floats
    error: Floats
    shared: Floats
    low: Floats
    high: Floats
    seen: NDArray[np.int64]
    inputs: int
    effective_inputs: float
    level: float
    quality: Floats | None = None
    quality_error: Floats | None = None
    reach: float = 0.5
    facts: Document = field(default_factory=dict)
    outcomes: Outcomes | None = None

    @property
    def measured(self) -> NDArray[np.bool_]:
        return self.seen > 0

    @property
    def inferences(self) -> int:
        return int(self.seen.sum())

    @property
    def saved(self) -> float:
        """The share of a full tomography's inferences that were not needed."""
        return 1 - self.inferences / (self.inputs * len(self.tests))

    @functools.cached_property
    def values(self) -> Mapping[str, Array]:
        """The columns that questions can be asked about, one number per test."""
        columns: dict[str, Array] = {
            name: self.tests.severities[:, j].astype(np.int64) for j, name in enumerate(self.space.names)
        }
        columns |= {"order": self.tests.order, "severity_sum": self.tests.severity_sum}
        return columns if self.quality is None else columns | {"quality": self.quality}

    def condition(self, text: str) -> Condition:
        """The condition that a question asks, by name (Q1 … Q12) or in words."""
        return parse(question(text), self.space.names, self.space.levels, self.quality is not None)

    def asked(self, text: str) -> NDArray[np.int64]:
        """The numbers of the tests that meet ``text``."""
        rows = np.flatnonzero(self.condition(text).holds(self.values, len(self.tests)))
        if not len(rows):
            raise InputError(f"no test of this tomography meets {question(text)!r}; ask for a wider range")
        return rows

    def ask(self, text: str, worst: int = 5) -> Answer:
        """R(Q) of the tests that meet ``text``, its interval, and the ``worst`` of them."""
        return self.answer(text, self.asked(text), worst)

    def answer(self, text: str, rows: NDArray[np.int64], worst: int = 5) -> Answer:
        """R(Q) of these tests, which ``text`` asks about."""
        value = float(self.share[rows].mean())
        error = self.error_of_mean(rows)
        half = float(ndtri(0.5 + self.level / 2))
        wide = half * math.sqrt(error**2 + self.sampling_variance(value))
        measured = int(self.measured[rows].sum())
        lowest = rows[np.argsort(self.share[rows], kind="stable")[:worst]]
        return Answer(
            question=text,
            value=value,
            low=max(0.0, value - half * error),
            high=min(1.0, value + half * error),
            population_low=max(0.0, value - wide),
            population_high=min(1.0, value + wide),
            level=self.level,
            measured=measured,
            predicted=len(rows) - measured,
            quality=None if self.quality is None else float(self.quality[rows].mean()),
            worst=tuple(self.case(int(row)) for row in lowest),
        )

    def case(self, row: int) -> Case:
        """One test in words and numbers."""
        quality = None if self.quality is None else float(self.quality[row])
        label = self.space.label(self.tests.steps(row))
        numbers = (float(self.share[row]), float(self.low[row]), float(self.high[row]))
        return Case(label, *numbers, bool(self.seen[row] > 0), quality)

    def grid(self, *numbers: int) -> NDArray[np.int64]:
        """The number of the test at each combination of severities of some perturbations, the others at 0; −1: there is
        none. In an ordered space they are applied in the order given."""
        rows = np.full((self.space.levels + 1,) * len(numbers), -1, np.int64)
        wanted = ~np.delete(self.tests.severities, list(numbers), axis=1).any(axis=1)
        if self.space.ordered:
            for one, later in itertools.combinations(numbers, 2):
                ranks = self.tests.ranks[:, one], self.tests.ranks[:, later]
                wanted &= ~((ranks[0] > ranks[1]) & (ranks[1] > 0))
        rows[tuple(self.tests.severities[wanted][:, list(numbers)].T)] = np.flatnonzero(wanted)
        return rows

    def pair(self, first: int, second: int) -> tuple[Floats, NDArray[np.bool_]]:
        """(share, measured) by severity of two perturbations, the others at 0: a table (levels + 1)². In an ordered
        space ``first`` is applied first."""
        rows = self.grid(first, second)
        return np.where(rows < 0, np.nan, self.share[rows]), (rows >= 0) & self.measured[rows]

    def by_severity_sum(self) -> list[tuple[int, float, float, float, float | None]]:
        """(severity sum, mean share, lowest, highest, mean quality) of the tests with each sum."""
        sums = self.tests.severity_sum
        profile = []
        for value in np.unique(sums).tolist():
            rows = sums == value
            quality = None if self.quality is None else float(self.quality[rows].mean())
            share = self.share[rows]
            profile.append((int(value), float(share.mean()), float(share.min()), float(share.max()), quality))
        return profile

    def sampling_variance(self, share: float) -> float:
        """The variance of a mean share that comes from the inputs being a sample of production."""
        return max(share * (1 - share), 0.25 / self.effective_inputs) / self.effective_inputs

    def error_of_mean(self, rows: NDArray[np.int64]) -> float:
        """The standard error of a mean over tests: shared errors add up whole, others as far as near tests agree."""
        if len(rows) > _MOST_IN_COVARIANCE:
            rows = rows[np.linspace(0, len(rows) - 1, _MOST_IN_COVARIANCE).astype(int)]
        own = np.sqrt(np.maximum(self.error[rows] ** 2 - self.shared[rows] ** 2, 0))
        active = own > 0
        together = 0.0
        if active.any():
            place = self.tests.severities[rows[active]] / (self.space.levels * self.reach)
            squares = (place**2).sum(axis=1)
            apart = np.maximum(squares[:, None] + squares[None] - 2 * place @ place.T, 0)
            together = float(own[active] @ np.exp(-1.5 * apart) @ own[active]) / len(rows) ** 2
        return float(np.sqrt(self.shared[rows].mean() ** 2 + together))

"""What is known of the draws that count for a measure, with their coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opmon.estimators._linear import LinearEstimator
from opmon.estimators._ratios import Part
from opmon.quantities import Quantity
from opmon.types import Estimate, Floats, Problem, Sample
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class Known:
    """The draws that count, ``rows``, and the sample that has an answer for these alone."""

    estimator: LinearEstimator
    sample: Sample
    rows: Labelled
    usable: NDArray[np.bool_]

    def of_all(self, values: Floats) -> Floats:
        """One value for each draw, 0 for those that do not count."""
        full = np.zeros(len(self.usable))
        full[self.usable] = values
        return full

    @cached_property
    def coefficients(self) -> Floats:
        """``a_k`` of the rows."""
        return self.estimator.coefficients(self.sample)[self.usable]

    @cached_property
    def weights(self) -> Floats:
        """``a_k`` of the rows, scaled so that their sum is 1."""
        return np.asarray(self.coefficients / self.coefficients.sum())

    @property
    def draws(self) -> float:
        """``(Σa)²/Σa²``: how many draws of equal weight the rows are worth."""
        return float(1 / (self.weights @ self.weights))

    @cached_property
    def whole(self) -> bool:
        """Whether the frame was drawn whole, so that nothing is left to estimate."""
        every = np.ones(len(self.rows))
        return self.part(every, every).known

    @cached_property
    def _units(self) -> dict[bytes, float]:
        return {}

    def part(self, values: Floats, mass: Floats) -> Part:
        """The part of the rows with these masses; both are of the rows."""
        key = mass.tobytes()
        part = Part.of(self.estimator, self.sample, self.of_all(values), self.of_all(mass), self._units.get(key))
        self._units[key] = part.unit
        return part

    @cached_property
    def cells(self) -> tuple[NDArray[np.int64], Floats]:
        """The cell of each row for a bootstrap, none with a single row where there are others, and what is left of the
        variance there."""
        cell, left = self.estimator.cells(self.sample)
        _, place = np.unique(cell[self.usable], return_inverse=True)
        alone = np.bincount(place) == 1
        joined = np.cumsum(~alone | (np.arange(len(alone)) == 0)) - 1
        return np.asarray(joined[place]), left[self.usable]

    def variance(self, influence: Floats) -> float:
        """The variance of ``Σ a_k u_k`` with the weights scaled."""
        return self.estimator.variance(self.sample, self.of_all(influence)) / float(self.coefficients.sum()) ** 2

    def answering(self, losses: Floats, problem: Problem) -> Sample:
        """The sample with these losses as its outcomes."""
        outcomes = np.full(len(self.usable), np.nan)
        outcomes[self.usable] = losses
        return Sample(self.sample.draw, outcomes, problem, self.sample.propensity)

    def estimate(
        self,
        value: float,
        low: float,
        high: float,
        quantity: Quantity,
        method: str,
        level: float,
        error: float | None,
        notes: tuple[str, ...] = (),
    ) -> Estimate:
        """An estimate of the frame from these draws; the interval is stretched to hold the value."""
        return Estimate(
            value=float(value),
            low=float(min(low, value)),
            high=float(max(high, value)),
            n=len(self.sample.draw),
            frame_size=self.sample.draw.frame_size,
            response=self.sample.response,
            method=f"{self.sample.draw.design}/{method}",
            level=level,
            quantity=quantity,
            standard_error=None if error is None else float(error),
            notes=notes,
        )

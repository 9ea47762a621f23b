"""The outcomes of inputs under the tests that were run, by which two tomographies of the same inputs are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opmon.types import Floats, Numbers


@dataclass(frozen=True, eq=False)
class Outcomes:
    """``values[t, i]``: whether input i is right under measured test t, which is number ``rows[t]`` of its space.

    It is 0 or 1 where the test looked at the input, else what is expected of it; ``unexplained[t]`` is the mean
    variance of the inputs about what was expected of them. ``inputs`` names the inputs by what they hold, ``weights``
    say what each stands for (mean 1).
    """

    rows: NDArray[np.int64]
    values: NDArray[np.float32]
    unexplained: Floats
    inputs: NDArray[np.str_]
    weights: Floats

    @classmethod
    def of(
        cls,
        rows: ArrayLike,
        values: Numbers,
        variance: Numbers,
        inputs: NDArray[np.str_],
        weights: NDArray[np.float64] | None,
    ) -> Outcomes:
        """The outcomes with the inputs in the order of their names."""
        weights = np.ones(len(inputs)) if weights is None else weights * (len(inputs) / weights.sum())
        order = np.lexsort((weights, inputs))
        return cls(
            np.asarray(rows, np.int64),
            np.asarray(values, np.float32)[:, order],
            np.asarray(variance, np.float64).mean(axis=1),
            inputs[order],
            weights[order],
        )

    def same_inputs(self, other: Outcomes) -> bool:
        """Whether both were measured on the same inputs, standing for the same: then they are compared one by one."""
        return np.array_equal(self.inputs, other.inputs) and np.allclose(self.weights, other.weights)

    def mean_over(self, rows: NDArray[np.int64]) -> tuple[Floats, float]:
        """Each input's mean over tests of the space, all of them measured; and the variance left about such a mean."""
        which = np.isin(self.rows, rows)
        left = self.unexplained[which].sum() / which.sum() ** 2
        return self.values[which].mean(axis=0, dtype=np.float64), float(left)

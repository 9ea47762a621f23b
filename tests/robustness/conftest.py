"""A synthetic model whose robustness is known: an input falls where the damage of a test exceeds its strength."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from opmon.robustness.evaluation import Judged
from opmon.robustness.measured import Visit
from opmon.robustness.space import Space, Tests


class Synthetic:
    """Damage per severity and perturbation, with an interaction; strengths of inputs are drawn once."""

    def __init__(self, space: Space, inputs: int = 800, seed: int = 0, together: float = 0.5) -> None:
        rng = np.random.default_rng(seed)
        k = len(space.names)
        self.space, self.inputs, self.together = space, inputs, together
        self.strength = rng.gamma(3.0, 1.0, inputs) - 0.4
        self.damage = rng.gamma(2.0, 0.2, (inputs, k)) * np.linspace(0.6, 1.4, k)
        self.looked = 0

    def margin(self, tests: Tests) -> NDArray[np.float64]:
        level = tests.severities / self.space.levels * 3
        each = level[:, None, :] * self.damage[None]
        both = (each.sum(axis=2) ** 2 - (each**2).sum(axis=2)) / 2
        return self.strength[None] - each.sum(axis=2) - self.together * both

    def share(self, tests: Tests) -> NDArray[np.float64]:
        return np.asarray((self.margin(tests) > 0).mean(axis=1))

    def look(self, tests: Tests, visits: Sequence[Visit]) -> Iterator[tuple[Visit, Judged]]:
        for rows, start, stop in visits:
            margin = self.margin(tests.take(rows))[:, start:stop]
            self.looked += margin.size
            yield (rows, start, stop), Judged((margin > 0).ravel(), margin.ravel().astype(np.float32))


@pytest.fixture
def synthetic() -> Callable[..., Synthetic]:
    return Synthetic

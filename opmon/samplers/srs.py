"""Simple random sampling: every input with the same probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.abc import Sampler
from opmon.samplers._checks import is_whole, take_all
from opmon.types import Draw, Frame


@dataclass(frozen=True)
class SimpleRandom(Sampler):
    """Draw ``budget`` inputs uniformly: the yardstick for every other sampler, and right whatever the model.

    Without replacement (the default) no label is spent twice and the interval takes the finite population into
    account; with replacement is the design of the papers (DeepSample, section 3.4.1).

    Constant ``replacement``: which of the two it was.

    >>> draw = SimpleRandom().draw(Frame({}, size=1000), 3, np.random.default_rng(1))
    >>> len(draw.unique_positions)
    3
    """

    replacement: bool = False
    """Whether an input may be drawn more than once."""

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        if is_whole(frame, budget):
            return take_all(frame, rng)
        if self.replacement:
            positions = rng.integers(0, frame.size, budget)
        else:
            positions = rng.choice(frame.size, budget, replace=False, shuffle=True)
        return Draw("srs", frame.size, positions, constants={"replacement": np.array(self.replacement)})

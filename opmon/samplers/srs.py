"""Simple random sampling: every input with the same probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.abc import Sampler
from opmon.samplers._checks import is_whole, take_all
from opmon.samplers._reserved import shared
from opmon.types import Draw, Frame
from opmon.types.frame import Reserved


@dataclass(frozen=True)
class SimpleRandom(Sampler):
    """Draw ``budget`` inputs uniformly: the yardstick for every other sampler, and right whatever the model.

    Without replacement (the default) no label is spent twice and the interval takes the finite population into
    account; with replacement is the design of the papers (DeepSample, section 3.4.1).

    Constant ``replacement``: which of the two it was. Where draws are promised to parts of the frame, each part is a
    stratum of the design ``ssrs``, with draws in proportion to its size or as many as promised.

    >>> draw = SimpleRandom().draw(Frame({}, size=1000), 3, np.random.default_rng(1))
    >>> len(draw.unique_positions)
    3
    """

    replacement: bool = False
    """Whether an input may be drawn more than once."""

    @property
    def reserves(self) -> bool:
        return not self.replacement

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        if is_whole(frame, budget):
            return take_all(frame, rng)
        if frame.reserved is not None and not self.replacement:
            return _by_part(frame.reserved, budget, rng)
        if self.replacement:
            positions = rng.integers(0, frame.size, budget)
        else:
            positions = rng.choice(frame.size, budget, replace=False, shuffle=True)
        return Draw("srs", frame.size, positions, constants={"replacement": np.array(self.replacement)})


def _by_part(reserved: Reserved, budget: int, rng: np.random.Generator) -> Draw:
    sizes = np.bincount(reserved.part, minlength=len(reserved.least))
    counts = shared(reserved, sizes, sizes.astype(np.float64), np.zeros_like(sizes), budget, 0)
    members = [np.flatnonzero(reserved.part == part) for part in range(len(sizes))]
    drawn = [rng.choice(own, int(count), replace=False) for own, count in zip(members, counts, strict=True)]
    kept, order = np.flatnonzero(sizes), rng.permutation(budget)
    stratum = np.repeat(np.arange(len(kept)), counts[kept])
    columns, constants = {"stratum": stratum[order]}, {"stratum_size": sizes[kept]}
    return Draw("ssrs", len(reserved), np.concatenate(drawn)[order], columns, constants)

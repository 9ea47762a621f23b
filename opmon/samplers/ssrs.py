"""SSRS: stratified simple random sampling with Neyman's allocation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.errors import InputError
from opmon.samplers.core import Prepared, auxiliary, is_whole, take_all
from opmon.samplers.strata_core import Strata, proportional
from opmon.types import Draw, Frame


@dataclass(frozen=True)
class Stratified:
    """Cut the frame into strata by k-means on χ and draw ``n_h ∝ N_h · sd_h(χ)`` without replacement in each.

    DeepSample, section 3.4.4; the allocation is Neyman's (J. R. Stat. Soc. 97, 1934) with χ standing for the outcome.
    Every stratum gets at least one draw and none more than it has; with a budget below ``strata`` there are as many
    strata as draws. Order is random over the whole draw, so that a part of it is still a sample of every stratum.

    Column ``stratum``; constant ``stratum_size``: the inputs in each stratum.
    """

    variable: str = "confidence"
    strata: int = 10

    def __post_init__(self) -> None:
        if self.strata < 1 or self.strata > 200:
            raise InputError(f"strata must lie in 1..200; got {self.strata!r}")

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        return self.prepare(frame, budget)(rng)

    def prepare(self, frame: Frame, budget: int) -> Prepared:
        values = auxiliary(frame, self.variable)
        if is_whole(frame, budget):
            return lambda rng: take_all(frame, rng)
        strata = Strata.by_kmeans(values, min(self.strata, budget))
        counts = proportional(strata.sizes * strata.spreads, budget, strata.sizes, least=1)

        def draw(rng: np.random.Generator) -> Draw:
            positions = np.concatenate([strata.draw(h, int(n_h), rng) for h, n_h in enumerate(counts)])
            mixed = rng.permutation(budget)
            return Draw(
                "ssrs",
                frame.size,
                positions[mixed],
                columns={"stratum": np.repeat(np.arange(strata.count), counts)[mixed]},
                constants={"stratum_size": strata.sizes},
            )

        return draw

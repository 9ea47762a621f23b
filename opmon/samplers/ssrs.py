"""SSRS: stratified simple random sampling with Neyman's allocation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.samplers._checks import ByVariable, Prepared, checked_count
from opmon.samplers._strata import Strata, proportional
from opmon.types import Draw, Numbers


@dataclass(frozen=True)
class Stratified(ByVariable):
    """Cut the frame into strata by k-means on χ and draw ``n_h ∝ N_h · sd_h(χ)`` without replacement in each.

    DeepSample, section 3.4.4; the allocation is Neyman's (J. R. Stat. Soc. 97, 1934) with χ standing for the outcome.
    Every stratum gets at least one draw and none more than it has; with a budget below ``strata`` there are as many
    strata as draws. Order is random over the whole draw, so that a part of it is still a sample of every stratum.

    Column ``stratum``; constant ``stratum_size``: the inputs in each stratum.
    """

    strata: int = 10
    """Into how many strata the variable is cut."""

    def __post_init__(self) -> None:
        checked_count(self.strata, "strata", 200)

    def prepared(self, values: Numbers, budget: int) -> Prepared:
        strata = Strata.by_kmeans(values, min(self.strata, budget))
        counts = proportional(strata.sizes * strata.spreads, budget, strata.sizes, least=1)

        def draw(rng: np.random.Generator) -> Draw:
            positions = np.concatenate([strata.draw(h, int(n_h), rng) for h, n_h in enumerate(counts)])
            mixed = rng.permutation(budget)
            return Draw(
                "ssrs",
                len(values),
                positions[mixed],
                columns={"stratum": np.repeat(np.arange(strata.count), counts)[mixed]},
                constants={"stratum_size": strata.sizes},
            )

        return draw

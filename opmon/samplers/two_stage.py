"""2-UPS: a stratum in proportion to its size, then an input uniformly inside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.samplers._checks import ByVariable, Prepared, checked_count, checked_share
from opmon.samplers._strata import Strata
from opmon.samplers._weights import FLOOR
from opmon.types import Draw, Numbers, Positions


@dataclass(frozen=True)
class TwoStage(ByVariable):
    """For each draw a stratum with probability ``ψ_h = (1 − λ) Σ_{i∈h} χ_i / Σχ + λ N_h / N``, then an input inside it.

    Strata come back with replacement, inputs inside a stratum without it until all of them are drawn (DeepSample,
    section 3.4.6). λ is ``defensive``; 0 is the paper's design, λ > 0 bounds the weights ``N_h / (N ψ_h)`` by ``1/λ``.

    Column ``stratum``; constants ``stratum_size`` (N_h) and ``stratum_probability`` (ψ_h).
    """

    strata: int = 10
    """Into how many strata the variable is cut."""
    defensive: float = 0.1
    """The share of the draws that is spread over all inputs alike, so that no input is nearly impossible."""

    def __post_init__(self) -> None:
        checked_share(self.defensive, "defensive")
        checked_count(self.strata, "strata", 200)

    def prepared(self, values: Numbers, budget: int) -> Prepared:
        strata = Strata.by_kmeans(values, self.strata)
        sums = np.maximum(strata.sums, max(FLOOR * strata.sums.sum() / len(values), 1e-300) * strata.sizes)
        psi = (1 - self.defensive) * sums / sums.sum() + self.defensive * strata.sizes / len(values)
        psi /= psi.sum()

        def draw(rng: np.random.Generator) -> Draw:
            chosen = rng.choice(strata.count, budget, p=psi)
            positions = np.empty(budget, dtype=np.int64)
            for h in np.unique(chosen):
                here = np.flatnonzero(chosen == h)
                positions[here] = _inside(strata, int(h), len(here), rng)
            return Draw(
                "two_stage",
                len(values),
                positions,
                columns={"stratum": chosen},
                constants={"stratum_size": strata.sizes, "stratum_probability": psi},
            )

        return draw


def _inside(strata: Strata, stratum: int, count: int, rng: np.random.Generator) -> Positions:
    """``count`` inputs of a stratum, every one once before any comes again."""
    size = int(strata.sizes[stratum])
    rounds = [size] * (count // size) + [count % size]
    return np.concatenate([strata.draw(stratum, number, rng) for number in rounds])

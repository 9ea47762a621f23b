"""RHC-S: one draw in proportion to size from each of n random groups (Rao, Hartley and Cochran)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.samplers._checks import ByVariable, Prepared, checked_share
from opmon.samplers._weights import Mixture, ProbabilityClasses, Weights, class_count
from opmon.types import Draw, Numbers


@dataclass(frozen=True)
class RaoHartleyCochran(ByVariable):
    """Split the frame at random into ``budget`` groups of nearly equal size and draw one input from each.

    Within a group an input is drawn in proportion to ``p_i = (1 − λ) χ_i / Σχ + λ / N`` (λ is ``defensive``; 0 is the
    paper's: DeepSample, section 3.4.3; Rao, Hartley and Cochran, J. R. Stat. Soc. B 24, 1962). No input is drawn
    twice, so it is a little more precise than SUPS at the same cost in labels.

    Columns: ``probability`` (p_i in the frame), ``group_probability`` (sum of p in the draw's group), ``group_size``
    and ``stratum``, the class of similar probability; constant ``stratum_size``: the inputs in each class.
    """

    defensive: float = 0.1
    """The share of the draws that is spread over all inputs alike, so that no input is nearly impossible."""

    def __post_init__(self) -> None:
        checked_share(self.defensive, "defensive")

    def prepared(self, values: Numbers, budget: int) -> Prepared:
        mixture = Mixture(Weights.of(values), self.defensive)
        probabilities = np.concatenate(list(mixture.by_chunk()))
        classes = ProbabilityClasses.of(mixture, class_count(budget))
        ends = np.arange(1, budget + 1) * len(values) // budget
        sizes = np.diff(ends, prepend=0)

        def draw(rng: np.random.Generator) -> Draw:
            order = rng.permutation(len(values))
            running = np.cumsum(probabilities[order])
            group = np.diff(running[ends - 1], prepend=0.0)
            places = np.searchsorted(running, running[ends - 1] - rng.random(budget) * group, side="left")
            positions = order[np.clip(places, ends - sizes, ends - 1)]
            mixed = rng.permutation(budget)
            chosen = probabilities[positions][mixed]
            return Draw(
                "rhc",
                len(values),
                positions[mixed],
                columns={
                    "probability": chosen,
                    "group_probability": group[mixed],
                    "group_size": sizes[mixed],
                    "stratum": classes.at(chosen),
                },
                constants={"stratum_size": classes.sizes},
            )

        return draw

"""RHC-S: one draw in proportion to size from each of n random groups (Rao, Hartley and Cochran)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.samplers.core import Prepared, auxiliary, checked_share, is_whole, take_all
from opmon.samplers.weights_core import Mixture, ProbabilityClasses, Weights, class_count
from opmon.types import Draw, Frame


@dataclass(frozen=True)
class RaoHartleyCochran:
    """Split the frame at random into ``budget`` groups of nearly equal size and draw one input from each.

    Within a group an input is drawn in proportion to ``p_i = (1 − λ) χ_i / Σχ + λ / N`` (λ is ``defensive``; 0 is the
    paper's: DeepSample, section 3.4.3; Rao, Hartley and Cochran, J. R. Stat. Soc. B 24, 1962). No input is drawn
    twice, so it is a little more precise than SUPS at the same cost in labels.

    Columns: ``probability`` (p_i in the frame), ``group_probability`` (sum of p in the draw's group), ``group_size``
    and ``stratum``, the class of similar probability; constant ``stratum_size``: the inputs in each class.
    """

    variable: str = "confidence"
    defensive: float = 0.1

    def __post_init__(self) -> None:
        checked_share(self.defensive, "defensive")

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        return self.prepare(frame, budget)(rng)

    def prepare(self, frame: Frame, budget: int) -> Prepared:
        values = auxiliary(frame, self.variable)
        if is_whole(frame, budget):
            return lambda rng: take_all(frame, rng)
        mixture = Mixture(Weights.of(values), self.defensive)
        probabilities = np.concatenate(list(mixture.by_chunk()))
        classes = ProbabilityClasses.of(mixture, class_count(budget))
        ends = np.arange(1, budget + 1) * frame.size // budget
        sizes = np.diff(ends, prepend=0)

        def draw(rng: np.random.Generator) -> Draw:
            order = rng.permutation(frame.size)
            running = np.cumsum(probabilities[order])
            group = np.diff(running[ends - 1], prepend=0.0)
            found = np.searchsorted(running, running[ends - 1] - rng.random(budget) * group, side="left")
            positions = order[np.clip(found, ends - sizes, ends - 1)]
            mixed = rng.permutation(budget)
            chosen = probabilities[positions][mixed]
            return Draw(
                "rhc",
                frame.size,
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

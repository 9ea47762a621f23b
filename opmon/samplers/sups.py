"""SUPS: unequal-probability sampling with replacement, in proportion to an auxiliary variable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.samplers._checks import ByVariable, Prepared, checked_share
from opmon.samplers._weights import Mixture, ProbabilityClasses, Weights, class_count
from opmon.types import Draw, Numbers


@dataclass(frozen=True)
class ProportionalToSize(ByVariable):
    """Draw with replacement with probability ``p_i = (1 − λ) χ_i / Σχ + λ / N`` (DeepSample, section 3.4.2).

    ``λ`` is ``defensive``. λ = 0 is the paper's design: it exposes most failures, but one failure among the inputs
    that the variable trusts then weighs without limit. λ > 0 bounds every weight ``1 / (N p_i)`` by ``1 / λ``;
    λ = 1 is simple random sampling with replacement.

    Columns: ``probability`` (p_i) and ``stratum``, the class of similar probability the draw is in;
    constant ``stratum_size``: the inputs in each class.

    >>> from opmon.types import Frame
    >>> frame = Frame({"confidence": np.array([0.9, 0.1, 0.1, 0.1])})
    >>> draw = ProportionalToSize(defensive=0.0).draw(frame, 2, np.random.default_rng(1))
    >>> draw.columns["probability"].round(3)
    array([0.083, 0.75 ])
    """

    defensive: float = 0.1
    """The share of the draws that is spread over all inputs alike, so that no input is nearly impossible."""

    def __post_init__(self) -> None:
        checked_share(self.defensive, "defensive")

    def prepared(self, values: Numbers, budget: int) -> Prepared:
        mixture = Mixture(Weights.of(values), self.defensive)
        classes = ProbabilityClasses.of(mixture, class_count(budget))

        def draw(rng: np.random.Generator) -> Draw:
            positions = mixture.draw(budget, rng)
            probability = mixture.at(positions)
            return Draw(
                "sups",
                len(values),
                positions,
                columns={"probability": probability, "stratum": classes.at(probability)},
                constants={"stratum_size": classes.sizes},
            )

        return draw

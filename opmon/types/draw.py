"""What a sampler chose, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.problems import Problem, traits
from opmon.types.arrays import Array, Positions

KIND = "stratum_kind"
"""The constant of a draw that says of each stratum which kind of input it holds: with the same truth all of them have
the same value for the measure that was aimed at."""
PREDICTED, PREDICTED_COUNT = "predicted", "predicted_count"
"""The constants of a draw that say which classes the model predicts in the frame, and how many inputs each."""


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """What a sampler chose, in order, with all that its estimator needs.

    ``positions`` are positions in the frame, in the order drawn; a design with replacement may draw one twice: it is
    labelled once and counted twice. ``columns`` holds one value per draw (``probability``, ``stratum``, …),
    ``constants`` what belongs to the design as a whole (``stratum_size``, …): the sampler documents both.
    """

    design: str
    frame_size: int
    positions: Positions
    columns: Mapping[str, Array] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.frame_size < 1:
            raise InputError(f"a draw comes from a frame of at least one input; got frame_size={self.frame_size}")
        if self.positions.ndim != 1 or not np.issubdtype(self.positions.dtype, np.integer):
            raise InputError(
                f"positions must be a 1-D array of integers; got {self.positions.dtype} of shape {self.positions.shape}"
            )
        if len(self.positions) and not (self.positions.min() >= 0 and self.positions.max() < self.frame_size):
            raise InputError(
                f"positions must lie in 0..{self.frame_size - 1}; got {self.positions.min()}..{self.positions.max()}"
            )
        for name, values in self.columns.items():
            if len(values) != len(self.positions):
                raise InputError(f"column {name!r} has {len(values)} values for {len(self.positions)} draws")

    def __len__(self) -> int:
        return len(self.positions)

    def with_predicted(self, counts: Mapping[str, int]) -> Draw:
        """The draw with the number of inputs of its frame that are predicted as each class."""
        known = {
            PREDICTED: np.array(list(counts), dtype=np.str_),
            PREDICTED_COUNT: np.array(list(counts.values()), dtype=np.int64),
        }
        return replace(self, constants={**self.constants, **known})

    @property
    def unique_positions(self) -> Positions:
        """The drawn inputs, each once, in the order of their first draw: what is sent to the annotators."""
        _, first = np.unique(self.positions, return_index=True)
        return self.positions[np.sort(first)]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A draw with its outcomes: ``outcomes[k]`` belongs to ``draw.positions[k]``.

    The outcome is the loss: 1 where the model is wrong and 0 where it is right (classification, multilabel), the
    squared error (regression), or what the score lacks of 1 (judged). NaN means that no answer has come: skipped, or
    not yet returned.

    ``problem`` says which of them they are. Without it they count as shares while all of them are 0 or 1: wrong for
    a regression on whole numbers whose larger errors happen not to be drawn.
    """

    draw: Draw
    outcomes: NDArray[np.float64]
    problem: Problem | None = None
    propensity: NDArray[np.float64] | None = None
    """How likely each draw was to be answered, up to a factor (:func:`opmon.estimators.propensity.weighed` fits it);
    None where nothing is known beyond the strata: answers are then taken to be missing at random inside them."""

    def __post_init__(self) -> None:
        if self.outcomes.shape != self.draw.positions.shape:
            raise InputError(f"one outcome per draw: got {self.outcomes.shape} for {self.draw.positions.shape} draws")
        if self.propensity is not None and not (
            self.propensity.shape == self.outcomes.shape
            and np.isfinite(self.propensity).all()
            and (self.propensity > 0).all()
        ):
            raise InputError(
                f"the propensity is one number above 0 per draw: {len(self.draw)} of them; "
                f"got shape {self.propensity.shape}, the least of them {np.min(self.propensity, initial=np.inf)}"
            )
        answered = self.outcomes[~np.isnan(self.outcomes)]
        if not np.isfinite(answered).all() or (answered < 0).any():
            bad = answered[~np.isfinite(answered) | (answered < 0)][0]
            raise InputError(f"outcomes must be finite and >= 0, or NaN where there is no answer; got {bad}")
        if self.problem is None:
            return
        holds = traits(self.problem)
        if holds.right_or_wrong and not np.isin(answered, (0.0, 1.0)).all():
            bad = answered[~np.isin(answered, (0.0, 1.0))][0]
            raise InputError(f"outcomes of a {self.problem} are 0 (right) or 1 (wrong); got {bad}")
        if holds.is_share and (answered > 1).any():
            raise InputError(f"outcomes of a {self.problem} problem are at most 1; got {answered.max()}")

    @property
    def answered(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.outcomes)

    @property
    def response(self) -> float:
        """The share of draws that have an answer."""
        return float(self.answered.mean()) if len(self.draw) else 0.0

"""Which of the answered draws are failures: the model is wrong, a number far off, or an output scored low."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from opmon.problems import is_binary, traits
from opmon.store.plans import RoundPlan
from opmon.types import Sample

LARGEST = 0.1
"""Of a regression without a tolerance, so large a share of the answered inputs has the largest errors."""
ROUNDING = 1e-6
"""An error that is so little above the tolerance is at it: numbers are rounded where they are stored."""
LOW = 0.5
"""A score that lacks more than this of 1 is low."""


def failing(sample: Sample, plan: RoundPlan) -> dict[int, float]:
    """The positions of the failures, and their losses.

    Of a classifier the wrong answers. Of a regression the errors beyond the plan's tolerance, or else the largest; of
    scores those that lack more of 1 than the tolerance, or else than half.
    """
    answered = sample.answered
    losses = dict(zip(sample.draw.positions[answered].tolist(), sample.outcomes[answered].tolist(), strict=True))
    least = _least(np.array(list(losses.values())), plan)
    return {position: loss for position, loss in losses.items() if loss > least}


def _least(losses: NDArray[np.float64], plan: RoundPlan) -> float:
    """The loss up to which an answer is no failure."""
    if traits(plan.problem).is_share:
        return 0.0 if is_binary(losses, plan.problem) else (plan.tolerance or LOW) + 1e-9
    if plan.tolerance is not None:
        return (plan.tolerance * (1 + ROUNDING)) ** 2
    wrong = np.sort(losses[losses > 0])
    listed = math.ceil(LARGEST * len(losses))
    if len(wrong) <= listed:
        return 0.0
    least = float(wrong[-listed - 1])
    return least if least < wrong[-1] else float(np.nextafter(least, 0.0))  # all of many that are as large

"""The problems that a model may solve, and all that differs between them whoever looks: decided here alone.

``classification``: one of some classes. ``multilabel``: any number of them at once. ``regression``: a number.
``judged``: an output whose truth is not one value, such as a text or a ranking; people say how good it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.scales import score_of

Problem = Literal["classification", "regression", "multilabel", "judged"]
PROBLEMS: tuple[Problem, ...] = ("classification", "regression", "multilabel", "judged")
_ROUNDING = 2.0**-23
"""What single precision, in which most models answer, may add to a number, as a share of it."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What holds of every model of a problem."""

    of_classes: bool
    """Whether answers are made of classes that have names, and scores are one for each of them."""
    one_class: bool
    """Whether an answer is one class, by which inputs are told apart."""
    of_numbers: bool
    """Whether an answer is a number; it is kept as text where not."""
    is_share: bool
    """Whether the mean loss is a share: 1 less it lies between 0 and 1, and more is better."""
    right_or_wrong: bool | None
    """Whether each loss is 0 or 1; None: the losses themselves tell, for it depends on how people answer."""
    compares: bool
    """Whether people say what the truth is, and not how good the answer is that they see."""
    loss: Callable[[str, str], float]
    """What an answer costs, from what people said and what the model did."""


def _differs(truth: str, prediction: str) -> float:
    return float(truth != prediction)


def _squared(truth: str, prediction: str) -> float:
    return (float(truth) - float(prediction)) ** 2


def _lacking(said: str, prediction: str) -> float:
    return 1 - score_of(said)


_TRAITS: Mapping[Problem, Traits] = {
    "classification": Traits(True, True, False, True, True, True, _differs),
    "multilabel": Traits(True, False, False, True, True, True, _differs),
    "regression": Traits(False, False, True, False, False, True, _squared),
    "judged": Traits(False, False, False, True, None, False, _lacking),
}


SHARES: tuple[Problem, ...] = tuple(problem for problem in PROBLEMS if _TRAITS[problem].is_share)
"""The problems whose estimate lies between 0 and 1."""
OF_NUMBERS: tuple[Problem, ...] = tuple(problem for problem in PROBLEMS if _TRAITS[problem].of_numbers)
"""The problems whose answers are numbers."""


def traits(problem: Problem) -> Traits:
    """What holds of a problem."""
    return _TRAITS[problem]


def loss(truth: str, prediction: str, problem: Problem) -> float:
    """What a prediction costs: 1 where it is wrong and 0 where it is right, its squared error, or what its score lacks.

    >>> loss("cat", "dog", "classification"), loss("3", "5.5", "regression"), loss("0.75", "a long text", "judged")
    (1.0, 6.25, 0.25)
    """
    return _TRAITS[problem].loss(truth, prediction)


def is_binary(outcomes: NDArray[np.float64], problem: Problem | None = None) -> bool:
    """Whether each of the outcomes is that of an answer which is right (0) or wrong (1).

    Pass the sample's ``problem``; where it is None, or people give scores, the outcomes themselves decide.

    >>> is_binary(np.array([0.0, 1.0]), "regression"), is_binary(np.array([0.0, 1.0]), "judged")
    (False, True)
    """
    known = None if problem is None else _TRAITS[problem].right_or_wrong
    return bool(np.isin(outcomes, (0.0, 1.0)).all()) if known is None else known


def near_enough(truth: NDArray[np.float64], predicted: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
    """Which numbers are off by no more than a tolerance, as people reckon: hardly a decimal fraction is stored as it is
    written, and 1.1 − 1.0 is a little more than 0.1. What rounding may add counts for nothing, up to a thousandth of
    the tolerance.

    >>> near_enough(np.array([1.0, 1.0, 1.0]), np.array([1.1, np.float32(1.1), 1.1002]), 0.1)
    array([ True,  True, False])
    """
    rounding = _ROUNDING * np.maximum(np.abs(truth), np.abs(predicted))
    return np.asarray(np.abs(truth - predicted) <= tolerance + np.minimum(rounding, tolerance / 1000))

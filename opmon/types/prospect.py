"""What can be said of every input before its label: the model's answer, chances of truths, the error to expect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.problems import Problem
from opmon.types.arrays import Array, Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Prospect:
    """What is known of every input of a frame before its label; one entry per input everywhere."""

    predicted: Array
    """Of a classification the number of the predicted class in ``classes``, −1 for another; of several labels one row
    per input that says of each class whether it is predicted; of a regression the predicted number."""
    classes: tuple[str, ...] = ()
    chances: Mapping[str, Numbers] = field(default_factory=dict)
    """By class how likely the truth is to be it, or to have it; of judged outputs by score, written as a number, how
    likely people are to give it."""
    error: Numbers | None = None
    """Of a regression how far off the prediction is expected to be, in the unit of the label; None where nobody can
    say."""
    problem: Problem = "classification"
    scores: Mapping[str, Numbers] = field(default_factory=dict)
    """By class what the model itself says of its chance, NaN where it says nothing: what measures of scores are of."""

    def __post_init__(self) -> None:
        lengths = {"predicted": len(self.predicted)} | {name: len(values) for name, values in self.chances.items()}
        lengths |= {f"score of {name}": len(values) for name, values in self.scores.items()}
        if self.error is not None:
            lengths["error"] = len(self.error)
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise InputError(f"a prospect has one entry per input everywhere; got {told}")

    def __len__(self) -> int:
        return len(self.predicted)


@dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """What a measure's linearised value is likely to be, for every input of a frame: what a sampler aims by.

    Inputs are worth a label in proportion to ``spread``, by Neyman's allocation; strata are cut along ``mean``, so that
    what is known of it adds no variance; and inputs of two ``kind`` never share a stratum.
    """

    mean: Numbers
    spread: Numbers
    """Its standard deviation, up to a factor."""
    kind: NDArray[np.uint8]
    """Inputs of one kind have the same value for the same truth."""
    of_part: bool = False
    """Whether it is a ratio over a part of the frame that is not known, such as the inputs of a class: what may hide
    where few draws fall makes its interval wide, and more of them are spread over all inputs."""

    def __post_init__(self) -> None:
        if not len(self.mean) == len(self.spread) == len(self.kind):
            raise InputError(
                f"what is foreseen has one entry per input everywhere; got mean: {len(self.mean)}, spread: "
                f"{len(self.spread)}, kind: {len(self.kind)}"
            )

    def __len__(self) -> int:
        return len(self.mean)

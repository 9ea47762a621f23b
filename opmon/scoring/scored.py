"""The model's answers to those rows of a batch that could be scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from opmon.types import Array, Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The model's answers to one batch. ``rows`` are the numbers in the slice of the inputs that could be scored.

    ``predictions`` holds names of classes, or float64; ``variables`` one float32 per input, larger = more suspicious;
    ``rejected`` says why each of the other rows could not be scored. ``activations`` are those of the layer, one row
    per input, of a scorer opened with ``traced``.
    """

    slice_index: int
    rows: NDArray[np.int64]
    predictions: Array
    variables: Mapping[str, NDArray[np.float32]]
    rejected: Mapping[int, str]
    activations: NDArray[np.float32] | None = None
    unlike: int = 0
    """The number of predictions, which are the model's own labels, that are not the class with the greatest score."""
    classes: tuple[str, ...] | None = None
    """The classes that a prediction can be; None for regression, and where they are not known."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """In how many rows of the batch a column that the model takes has no value."""
    scores: Numbers | None = None
    """The probability of each of ``classes``, one row per input and NaN where it gives none, of a scorer that keeps
    them; None where it has none."""
    chances: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """By class how likely the model holds it to be the truth, of the classes that a sampler aims by."""
    unscored: int = 0
    """The number of answers beside which no scores were logged that can be read as such."""


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """The activations of one batch's good rows: what a reference is fitted on."""

    rows: NDArray[np.int64]
    activations: NDArray[np.float32]
    predicted: NDArray[np.int64]
    """The column of the predicted class; 0 for regression."""
    predictions: Array
    tensors: Mapping[str, Array]
    classes: tuple[str, ...] | None = None
    """The classes that a prediction can be; None for regression, and where they are not known."""

"""What the model said of a batch, put together from what it said of pieces of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.scoring.graph.compiled import bounded
from opmon.scoring.outputs.meaning import Answers


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What the model said of one batch. ``rows`` are row numbers in the slice, of the inputs that could be scored.

    ``predictions`` holds names of classes, or float64; ``variables`` one float32 per input, larger = more suspicious;
    ``rejected`` says why each of the other rows could not be scored. ``activations`` are those of the layer, one row
    per input, of a scorer opened with ``traced``.
    """

    slice_index: int
    rows: NDArray[np.int64]
    predictions: NDArray[Any]
    variables: Mapping[str, NDArray[np.float32]]
    rejected: Mapping[int, str]
    activations: NDArray[np.float32] | None = None
    unlike: int = 0
    """How many of the predictions, which are the model's own labels, are not the class with the greatest score."""
    classes: tuple[str, ...] | None = None
    """All that a prediction can be; None for regression, and where it cannot be told."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """In how many rows of the batch a column that the model takes has no value."""


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """The activations of one batch's good rows: what a reference is fitted on."""

    rows: NDArray[np.int64]
    activations: NDArray[np.float32]
    predicted: NDArray[np.int64]
    """The column of the predicted class; 0 for regression."""
    predictions: NDArray[Any]
    tensors: Mapping[str, NDArray[Any]]
    classes: tuple[str, ...] | None = None
    """All that a prediction can be; None for regression, and where it cannot be told."""


Piece = tuple[Answers, Sequence[NDArray[Any]]]
"""The answers on some rows, and their variables, then activations and predicted classes, where these are outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """The model's answers on a whole batch, its variables, and the layer's activations where they were asked for."""

    answers: Answers
    variables: Mapping[str, NDArray[np.float32]]
    activations: NDArray[np.float32] | None
    predicted: NDArray[np.int64]

    @classmethod
    def of(cls, pieces: Sequence[Piece], names: Sequence[str]) -> Said:
        """Of a batch in ``pieces``; ``names`` are the variables among their outputs."""
        whole = joined([answers for answers, _ in pieces])
        columns = [np.concatenate(column) for column in zip(*(outputs for _, outputs in pieces), strict=True)]
        traced = columns[len(names) :]
        count = len(whole.valid)
        return cls(
            whole,
            {name: bounded(column) for name, column in zip(names, columns, strict=False)},
            traced[0].reshape(count, -1) if traced else None,
            traced[1] if len(traced) > 1 else np.zeros(count, np.int64),
        )


def joined(answers: Sequence[Answers]) -> Answers:
    if len(answers) == 1:
        return answers[0]
    names = answers[0].variables
    return Answers(
        np.concatenate([answer.predictions for answer in answers]),
        {name: np.concatenate([answer.variables[name] for answer in answers]) for name in names},
        np.concatenate([answer.valid for answer in answers]),
        sum(answer.unlike for answer in answers),
        answers[0].classes,
    )

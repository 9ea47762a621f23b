"""The predictions of the original itself, which those of the converted model are compared with."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon.abc import ModelFile
from opmon.errors import ModelError
from opmon.scoring._failures import first_line
from opmon.scoring.conversion._categories import missing_text
from opmon.scoring.conversion._parts import takes_text
from opmon.scoring.conversion.boosters.asking import answers_of_file
from opmon.types import Array

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


class Refused(ModelError):
    """The original raises an error for some inputs, or for one of them."""


@dataclass
class Refusals:
    """The inputs that an original refuses, with the first reason; after ``most`` of them it is not asked any more."""

    most: int
    count: int = 0
    unasked: int = 0
    reason: str = ""

    def add(self, reason: str) -> None:
        self.count, self.reason = self.count + 1, self.reason or reason


def answered(
    model: BaseEstimator | ModelFile, tensors: Mapping[str, Array], refusals: Refusals
) -> tuple[NDArray[np.int64], Array]:
    """The inputs that the model answers, by their places, and its predictions for them.

    Where it refuses them all at once it is asked in halves: one input that it refuses costs itself alone.
    """
    count = len(next(iter(tensors.values())))
    found = list(_by_halves(model, tensors, np.arange(count), refusals))
    if not found:
        return np.empty(0, np.int64), np.empty(0)
    return np.concatenate([places for places, _ in found]), np.concatenate([answers for _, answers in found])


def _by_halves(
    model: BaseEstimator | ModelFile, tensors: Mapping[str, Array], places: NDArray[np.int64], refusals: Refusals
) -> Iterator[tuple[NDArray[np.int64], Array]]:
    if refusals.count >= refusals.most:
        refusals.unasked += len(places)
        return
    try:
        yield places, answers_of(model, {name: values[places] for name, values in tensors.items()})
    except Refused as exc:
        if len(places) == 1:
            refusals.add(str(exc))
            return
        for half in np.array_split(places, 2):
            yield from _by_halves(model, tensors, half, refusals)


def answers_of(model: BaseEstimator | ModelFile, tensors: Mapping[str, Array]) -> Array:
    """The model's predictions for inputs that are tensors, as opmon feeds them to the converted one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if isinstance(model, ModelFile):
                (values,) = tensors.values()
                return answers_of_file(model, values.reshape(len(values), -1))
            return np.asarray(model.predict(_given(model, tensors))).reshape(-1)
    except ModelError:
        raise
    except Exception as exc:  # the model's own code may fail in any way
        raise Refused(f"{type(exc).__name__}: {first_line(exc)}") from exc


def _given(model: BaseEstimator, tensors: Mapping[str, Array]) -> Array | pd.DataFrame:
    """The inputs as the model takes them: texts, a table with the names that it learned, or a matrix."""
    import pandas as pd

    tensors = {name: _with_gaps(model, values) for name, values in tensors.items()}
    if len(tensors) > 1:
        return pd.DataFrame(
            {name: pd.Series(values.reshape(-1), dtype=values.dtype) for name, values in tensors.items()}
        )
    (values,) = tensors.values()
    if takes_text(model):
        return values.reshape(-1)
    matrix = values.reshape(len(values), -1)
    names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != matrix.shape[1]:
        return matrix
    return pd.DataFrame(matrix, columns=list(names), dtype=matrix.dtype)


def _with_gaps(model: BaseEstimator, values: Array) -> Array:
    """Texts with what the model knows for a missing one in the place of None."""
    if values.dtype != np.object_:
        return values
    gaps = np.array([value is None for value in values.reshape(-1).tolist()], np.bool_).reshape(values.shape)
    if not gaps.any():
        return values
    given = values.copy()
    given[gaps] = missing_text(model)
    return given

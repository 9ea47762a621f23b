"""The predictions of the original itself, which those of the converted model are compared with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from opmon.abc import ModelFile
from opmon.errors import ModelError
from opmon.scoring._failures import first_line
from opmon.scoring.conversion._parts import takes_text
from opmon.scoring.conversion.boosters.asking import answers_of_file
from opmon.types import Array

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


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
        raise ModelError(f"the original does not answer: {type(exc).__name__}: {first_line(exc)}") from exc


def _given(model: BaseEstimator, tensors: Mapping[str, Array]) -> Array | pd.DataFrame:
    """The inputs as the model takes them: texts, a table with the names that it learned, or a matrix."""
    import pandas as pd

    if len(tensors) > 1:
        return pd.DataFrame({name: values.reshape(-1) for name, values in tensors.items()})
    (values,) = tensors.values()
    if takes_text(model):
        return values.reshape(-1)
    matrix = values.reshape(len(values), -1)
    names = getattr(model, "feature_names_in_", None)
    return matrix if names is None or len(names) != matrix.shape[1] else pd.DataFrame(matrix, columns=list(names))

"""Models as teams write them. The processes that run them import this file, and nothing of the tests."""

from __future__ import annotations

from typing import Any

import mlflow
import numpy as np


class Share(mlflow.pyfunc.PythonModel):
    """Gives the probability of the second of two classes."""

    def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:  # type: ignore[override]
        return 1 / (1 + np.exp(-3 * (model_input["age"] + model_input["income"] + model_input["amount"]).to_numpy()))


class Gaps(mlflow.pyfunc.PythonModel):
    """Answers 1 or 0, or nothing where the age is low; once as a label, and else as two scores."""

    def __init__(self, scores: bool) -> None:
        self.scores = scores

    def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:  # type: ignore[override]
        age = model_input["age"].to_numpy()
        said = np.where(age < -1, np.nan, age > 0)
        return np.stack([1 - said, said], axis=1) if self.scores else said


class Towns(mlflow.pyfunc.PythonModel):
    """Answers with the name of one of seventy towns."""

    def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:  # type: ignore[override]
        return [f"town {place % 70}" for place in range(len(model_input))]


class Looks(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """Three logits for the brightness of a picture of 4 x 4 pixels."""

    def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:  # type: ignore[override]
        assert model_input.shape[1:] == (1, 4, 4)
        bright = model_input.mean(axis=(1, 2, 3))
        return np.stack([-40 * np.abs(bright - middle) for middle in (0.1, 0.5, 0.9)], axis=1).astype(np.float32)

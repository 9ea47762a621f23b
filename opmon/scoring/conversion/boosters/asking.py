"""The predictions of boosted models by their own library, where it is installed."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import ArrayLike

from opmon.abc import ModelFile
from opmon.errors import ModelError
from opmon.scoring.conversion.boosters.from_catboost import loaded
from opmon.types import Array


def answers_of_file(file: ModelFile, matrix: Array) -> Array:
    """The model's predictions: names or numbers of classes, or numbers."""
    try:
        return np.asarray(_ASK[file.library](file, matrix)).reshape(-1)
    except ModuleNotFoundError as exc:
        raise ModelError(f"{file.library} is not installed here: run pip install {file.library}") from exc


def _xgboost(file: ModelFile, matrix: Array) -> Array:
    import xgboost

    booster = xgboost.Booster(model_file=str(file.path))
    best = booster.attr("best_iteration") if ".sklearn." in file.kind else None
    rounds = (0, 0 if best is None else int(best) + 1)
    answers = booster.predict(xgboost.DMatrix(matrix), validate_features=False, iteration_range=rounds)
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    return _named(answers, binary=objective == "binary:logistic", numbered=objective == "multi:softmax")


def _lightgbm(file: ModelFile, matrix: Array) -> Array:
    import lightgbm

    booster = lightgbm.Booster(model_file=str(file.path))
    objective = file.path.read_text(encoding="utf-8").partition("\nobjective=")[2].split()
    return _named(booster.predict(matrix), binary=bool(objective) and objective[0] == "binary")


def _catboost(file: ModelFile, matrix: Array) -> Array:
    return np.asarray(loaded(file.path, file.kind).predict(matrix))


def _named(answers: ArrayLike, binary: bool, numbered: bool = False) -> Array:
    """The numbers of the classes, where the library gives probabilities."""
    values = np.asarray(answers)
    if values.ndim > 1 and values.shape[1] > 1:
        return np.asarray(values.argmax(axis=1))
    if binary:
        return np.asarray(values > 0.5, int)
    return values.astype(int) if numbered else values


_ASK = {"xgboost": _xgboost, "lightgbm": _lightgbm, "catboost": _catboost}

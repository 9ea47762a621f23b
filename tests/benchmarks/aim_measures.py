"""Data and measures for ``aim.py --measures``: every measure that a sampler can aim at, of five problems.

Classifications with scores are those of ``measures.py`` (US census, California housing, cards and a simulated fraud),
regressions too, with the median income of Californian districts by a model of its own. Several labels at once: the
census (who works, is married, is disabled, is or was a soldier, by four models of another year) and a simulation.
Judged: used cars, where a price is the better the nearer it is, and simulated texts. Of ``no scores`` the sampler has
auxiliary variables alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import measures_data
import numpy as np
import pandas as pd
import tomography_data
from aiming import Population
from measures_data import some

from opmon.abc import Measure

Asked = tuple[Population, list[Measure]]
SIZE = 20_000
SCORED = ("auc", "average_precision", "macro_auc", "log_loss", "brier", "calibration_error")


def classified(name: str, folder: Path) -> Asked:
    """A case of ``measures.py`` with its measures of scores, and some that are of chances."""
    case = measures_data.case(name, None if name in measures_data.SIMULATED else folder)
    rows = case.rows
    variables = {key: np.asarray(values) for key, values in case.frame.variables.items()}
    population = Population(name, rows.truth, rows.predicted, rows.classes, rows.scores, variables)
    wanted = [*SCORED, "balanced_accuracy", "macro_f1", "weighted_f1"]
    return population, [case.measures[one] for one in wanted if one in case.measures]


def without_scores(name: str, folder: Path) -> Asked:
    case = measures_data.case(name, None if name in measures_data.SIMULATED else folder)
    rows = case.rows
    variables = {key: np.asarray(values) for key, values in case.frame.variables.items()}
    population = Population(f"{name}, no scores", rows.truth, rows.predicted, rows.classes, None, variables)
    return population, [case.measures[one] for one in ("recall", "f1", "cost", "balanced_accuracy")]


def errors_of(name: str, folder: Path) -> Asked:
    case = measures_data.case(name, None if name in measures_data.SIMULATED else folder)
    variables = {key: np.asarray(values) for key, values in case.frame.variables.items()}
    if name == "cars":
        table = pd.read_csv(folder / "regression_synthetic_reference.csv").sample(measures_data.SIZE, random_state=0)
        names = ("car_age", "km_driven", "price_new", "accident_count")
        variables = {key: table[key].to_numpy(np.float32) for key in names}
    population = Population(name, case.rows.truth, case.rows.predicted, variables=variables)
    return population, list(case.measures.values())


def incomes(folder: Path) -> Asked:
    """The median income of Californian districts, by houses and place; a model of some districts, used on others."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    tables = [pd.read_csv(folder / f"california_housing_{part}.csv") for part in ("reference", "analysis")]
    names = ["HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude"]
    model = HistGradientBoostingRegressor(random_state=0).fit(tables[0][names], tables[0]["MedInc"])
    said = model.predict(tables[1][names])
    variables = {name: tables[1][name].to_numpy(np.float32) for name in names[:5]}
    variables["predicted"] = np.maximum(said, 0).astype(np.float32)
    population = Population("housing incomes", tables[1]["MedInc"].to_numpy(float), said, variables=variables)
    return population, list(measures_data.of_errors(1.0).values())


def several(population: Population, rare: str) -> Asked:
    wanted = some(
        subset=("subset_accuracy", {}),
        hamming=("hamming_loss", {}),
        micro=("f1", {"average": "micro"}),
        macro=("f1", {"average": "macro"}),
        weighted=("precision", {"average": "weighted"}),
        macro_recall=("recall", {"average": "macro"}),
        recall=("recall", {"class": rare}),
        precision=("precision", {"class": rare}),
    )
    if population.chances is not None:
        wanted |= some(auc=("auc", {"class": rare}), ap=("average_precision", {}))
    return population, list(wanted.values())


def households(folder: Path) -> Population:
    from sklearn.ensemble import HistGradientBoostingClassifier

    before = pd.read_parquet(folder / "employment_MA_reference.pq").sample(SIZE, random_state=1)
    after = pd.read_parquet(folder / "employment_MA_analysis.pq")
    after = after.merge(pd.read_parquet(folder / "employment_MA_analysis_target.pq"), on="id")
    after = after.sample(SIZE, random_state=1)
    names = ["AGEP", "SCHL", "ESP", "CIT", "MIG", "NATIVITY", "SEX", "RAC1P"]
    inputs = [table[names].apply(pd.to_numeric, errors="coerce") for table in (before, after)]
    truths = [np.stack([
        table["employed"].to_numpy() == 1,
        pd.to_numeric(table["MAR"]).to_numpy() == 1,
        pd.to_numeric(table["DIS"]).to_numpy() == 1,
        np.isin(pd.to_numeric(table["MIL"]).to_numpy(), (1, 2)),
    ], axis=1) for table in (before, after)]  # fmt: skip
    models = [HistGradientBoostingClassifier(max_iter=80, random_state=0).fit(inputs[0], own) for own in truths[0].T]
    chances = np.stack([model.predict_proba(inputs[1])[:, 1] for model in models], axis=1)
    said = chances > np.array([0.5, 0.5, 0.3, 0.2])
    return of_sets("census, four labels", truths[1], said, chances, ("works", "married", "disabled", "soldier"))


def of_sets(
    name: str, truth: np.ndarray, said: np.ndarray, chances: np.ndarray, classes: tuple[str, ...]
) -> Population:
    doubt = np.minimum(chances, 1 - chances).max(axis=1)
    return Population(name, truth, said, classes, chances, {"confidence": doubt.astype(np.float32)})


def tags(rng: np.random.Generator) -> Population:
    """Six labels, the rarest on 3 % of inputs, with chances that are too sure."""
    odds = rng.normal(size=(SIZE, 6)) * 2.2 + np.array([0.0, -1.2, -2.0, -3.2, -4.0, -5.0])
    truth = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
    chances = 1 / (1 + np.exp(-1.4 * odds))
    return of_sets("simulated labels", truth, chances > 0.4, chances, tuple("abcdef"))


def judged(name: str, scores: np.ndarray, variables: dict[str, np.ndarray]) -> Asked:
    wanted = some(mean_score=("mean_score", {}), pass_rate=("pass_rate", {"at_least": 0.75}))
    own = {key: values.astype(np.float32) for key, values in variables.items()}
    return Population(name, scores, np.full(len(scores), np.nan), variables=own), list(wanted.values())


def judgements(folder: Path) -> Iterator[Asked]:
    case = measures_data.answers()
    yield judged("texts", case.rows.truth, {key: np.asarray(own) for key, own in case.frame.variables.items()})
    population, _ = errors_of("cars", folder)
    price = np.maximum(population.variables["price_new"], 1.0)
    off = np.abs(population.truth - population.predicted) / (0.05 * price)
    yield judged("cars, judged", np.round(4 * np.clip(1 - off, 0, 1)) / 4, population.variables)


def every() -> Iterator[Asked]:
    """Each population with the measures that are aimed at, one after the other."""
    folder = tomography_data.unpacked("nannyml", "nannyml/datasets/data/", tomography_data.cache_folder())
    for name in ("census", "housing", "cards", "fraud"):
        yield classified(name, folder)
    for name in ("census", "fraud"):
        yield without_scores(name, folder)
    for name in ("delays", "cars"):
        yield errors_of(name, folder)
    yield incomes(folder)
    for population, rare in ((households(folder), "soldier"), (tags(np.random.default_rng(6)), "f")):
        yield several(population, rare)
        yield several(replace(population, name=f"{population.name}, no scores", chances=None), rare)
    yield from judgements(folder)

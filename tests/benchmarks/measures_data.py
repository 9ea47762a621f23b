"""Data for the benchmark of measures: frames whose truths, predictions and scores are all known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import tomography_data

from opmon import plugins
from opmon.abc import Measure
from opmon.problems import loss
from opmon.types import Draw, Floats, Frame, Labelled, Problem, Sample

SIZE = 20_000


@dataclass(frozen=True, eq=False)
class Case:
    """A frame with all that is known of every input, and the measures that somebody would ask for."""

    name: str
    problem: Problem
    frame: Frame
    rows: Labelled
    losses: Floats
    measures: Mapping[str, Measure]
    unit: str | None = None

    def answer(self, draw: Draw) -> tuple[Sample, Labelled]:
        """The draw with all its answers."""
        return Sample(draw, self.losses[draw.positions], self.problem), self.rows.only(draw.positions)

    @cached_property
    def truths(self) -> Mapping[str, float]:
        """Each measure of the whole frame."""
        return {name: self.truth(measure) for name, measure in self.measures.items()}

    def truth(self, measure: Measure) -> float:
        """The measure of the whole frame."""
        quantile = measure.quantile(self.rows)
        if quantile is not None:
            return float(np.quantile(quantile.values, quantile.share, method="inverted_cdf"))
        return measure.value(self.rows, np.full(len(self.rows), 1 / len(self.rows)))


def some(**wanted: tuple[str, Mapping[str, object]]) -> dict[str, Measure]:
    """Measures by what the benchmark calls them."""
    return {name: plugins.make("measure", kind, dict(given)) for name, (kind, given) in wanted.items()}


def of_class(name: str) -> dict[str, Measure]:
    """What is asked of one class of several."""
    return some(
        recall=("recall", {"class": name}),
        precision=("precision", {"class": name}),
        f1=("f1", {"class": name}),
        auc=("auc", {"class": name}),
        average_precision=("average_precision", {"class": name}),
    )


def of_all() -> dict[str, Measure]:
    """What is asked of a classifier as a whole."""
    return some(
        accuracy=("accuracy", {}),
        balanced_accuracy=("balanced_accuracy", {}),
        macro_f1=("f1", {"average": "macro"}),
        weighted_f1=("f1", {"average": "weighted"}),
        weighted_precision=("precision", {"average": "weighted"}),
        macro_auc=("auc", {}),
        log_loss=("log_loss", {}),
        brier=("brier", {}),
        calibration_error=("calibration_error", {}),
    )


def costs(classes: Sequence[str], dear: Mapping[tuple[str, str], float]) -> dict[str, Measure]:
    """A cost of 1 for each mistake, and more for some."""
    matrix = {a: {b: dear.get((a, b), 1.0) for b in classes if b != a} for a in classes}
    return some(cost=("cost", {"matrix": matrix}))


def of_errors(tolerance: float) -> dict[str, Measure]:
    """What is asked of a regression."""
    return some(
        mean_squared_error=("mean_squared_error", {}),
        rmse=("root_mean_squared_error", {}),
        mae=("mean_absolute_error", {}),
        mape=("mean_absolute_percentage_error", {}),
        bias=("bias", {}),
        r_squared=("r_squared", {}),
        within=("within_tolerance", {"tolerance": tolerance}),
        median=("error_quantile", {"share": 0.5}),
        p90=("error_quantile", {"share": 0.9}),
    )


def _classifier(
    name: str,
    truth: np.ndarray,
    predicted: np.ndarray,
    scores: np.ndarray,
    classes: tuple[str, ...],
    more: dict[str, Measure],
) -> Case:
    rows = Labelled(np.ones(len(truth), dtype=bool), truth, predicted, scores, classes)
    confidence = np.clip(1 - scores[np.arange(len(truth)), [classes.index(p) for p in predicted]], 0, 1)
    frame = Frame({"confidence": confidence.astype(np.float32)}, predictions=predicted)
    return Case(name, "classification", frame, rows, (truth != predicted).astype(float), {**of_all(), **more})


def _regression(
    name: str, truth: np.ndarray, predicted: np.ndarray, suspicion: np.ndarray, tolerance: float, unit: str
) -> Case:
    rows = Labelled(np.ones(len(truth), dtype=bool), truth, predicted)
    frame = Frame({"confidence": (suspicion / suspicion.max()).astype(np.float32)})
    return Case(name, "regression", frame, rows, (truth - predicted) ** 2, of_errors(tolerance), unit)


def _two(name: str, truth: np.ndarray, chance: np.ndarray, cut: float, rare: str, dear: float) -> Case:
    classes = (rare, "other")
    said = np.where(chance > cut, rare, "other")
    more = {**of_class(rare), **costs(classes, {(rare, "other"): dear})}
    return _classifier(name, np.where(truth, rare, "other"), said, np.column_stack((chance, 1 - chance)), classes, more)


def census(folder: Path) -> Case:
    """US census, Massachusetts: who is employed, by a model of earlier years."""
    rows = pd.read_parquet(folder / "employment_MA_analysis.pq")
    truth = pd.read_parquet(folder / "employment_MA_analysis_target.pq")
    both = rows.merge(truth, on="id").sample(SIZE, random_state=0)
    chance = both["predicted_probability"].to_numpy(float)
    return _two("census", both["employed"].to_numpy() == 1, chance, 0.5, "employed", 3.0)


def housing(folder: Path) -> Case:
    """California, 1990: is a house dear? Right on nearly all."""
    rows = pd.read_csv(folder / "california_housing_reference.csv")
    return _two("housing", rows["clf_target"].to_numpy() == 1, rows["y_pred_proba"].to_numpy(float), 0.5, "dear", 5.0)


def cards(folder: Path) -> Case:
    """Which of three credit cards an applicant gets."""
    rows = pd.read_csv(folder / "mc_reference.csv").sample(SIZE, random_state=0)
    classes = ("highstreet_card", "prepaid_card", "upmarket_card")
    scores = rows[[f"y_pred_proba_{one}" for one in classes]].to_numpy(float)
    more = {**of_class("upmarket_card"), **costs(classes, {("prepaid_card", "upmarket_card"): 10.0})}
    truth, said = rows["y_true"].to_numpy(str), rows["y_pred"].to_numpy(str)
    return _classifier("cards", truth, said, scores, classes, more)


def cars(folder: Path) -> Case:
    """Prices of used cars."""
    rows = pd.read_csv(folder / "regression_synthetic_reference.csv").sample(SIZE, random_state=0)
    said = rows["y_pred"].to_numpy(float)
    return _regression("cars", rows["y_true"].to_numpy(float), said, rows["price_new"].to_numpy(float), 1000.0, "EUR")


def fraud(size: int = SIZE) -> Case:
    """Simulated: 1 % of payments are fraud, of which the model finds about 70 %."""
    rng = np.random.default_rng(1)
    truth = rng.permutation(size) < size // 100
    chance = 1 / (1 + np.exp(-(rng.normal(size=size) * 1.4 + np.where(truth, 0.8, -5.0))))
    return _two("fraud", truth, chance, 0.5, "fraud", 50.0)


def delays() -> Case:
    """Simulated: days until delivery, with errors as skew as a log-normal's."""
    rng = np.random.default_rng(2)
    size = np.exp(0.5 * rng.normal(size=SIZE))
    truth = 3 + 2 * size + rng.exponential(size=SIZE)
    predicted = truth + size * rng.normal(size=SIZE) * np.exp(0.4 * rng.normal(size=SIZE)) - 0.2
    return _regression("delays", truth, predicted, size * np.exp(0.3 * rng.normal(size=SIZE)), 1.0, "days")


def tags() -> Case:
    """Simulated: any of six labels at once, the rarest on 3 % of inputs."""
    rng = np.random.default_rng(3)
    shares = np.array([0.5, 0.3, 0.2, 0.1, 0.06, 0.03])
    difficulty = rng.normal(size=SIZE)
    truth = rng.random((SIZE, 6)) < shares
    wrong = rng.random((SIZE, 6)) < 0.5 * shares / (1 + np.exp(1 - difficulty))[:, None]
    rows = Labelled(np.ones(SIZE, dtype=bool), truth, truth ^ wrong, None, tuple("abcdef"))
    confidence = 0.9 / (1 + np.exp(2 - difficulty - 0.7 * rng.normal(size=SIZE)))
    measures = some(
        subset_accuracy=("subset_accuracy", {}),
        hamming_loss=("hamming_loss", {}),
        micro_f1=("f1", {"average": "micro"}),
        macro_f1=("f1", {"average": "macro"}),
        recall=("recall", {"class": "d"}),
        precision=("precision", {"class": "d"}),
    )
    losses = wrong.any(axis=1).astype(float)
    return Case("tags", "multilabel", Frame({"confidence": confidence.astype(np.float32)}), rows, losses, measures)


def answers() -> Case:
    """Simulated: texts that get up to five stars, and full marks on two thirds."""
    rng = np.random.default_rng(4)
    difficulty = rng.normal(size=SIZE)
    stars = np.clip(np.round(5.6 - 1.2 * difficulty + rng.normal(size=SIZE)), 1, 5)
    scores = (stars - 1) / 4
    rows = Labelled(np.ones(SIZE, dtype=bool), scores, np.full(SIZE, np.nan))
    confidence = 0.9 / (1 + np.exp(2 - difficulty - 0.7 * rng.normal(size=SIZE)))
    measures = some(mean_score=("mean_score", {}), pass_rate=("pass_rate", {"at_least": 0.75}))
    frame = Frame({"confidence": confidence.astype(np.float32)})
    return Case("answers", "judged", frame, rows, np.array([loss(str(one), "", "judged") for one in scores]), measures)


SIMULATED: Mapping[str, Callable[[], Case]] = {"fraud": fraud, "delays": delays, "tags": tags, "answers": answers}
DOWNLOADED: Mapping[str, Callable[[Path], Case]] = {"census": census, "housing": housing, "cards": cards, "cars": cars}
"""Those in PyPI's nannyml."""


def case(name: str, folder: Path | None = None) -> Case:
    """A case by its name; what is downloaded is kept in the user's cache."""
    if name in SIMULATED:
        return SIMULATED[name]()
    where = folder or tomography_data.unpacked("nannyml", "nannyml/datasets/data/", tomography_data.cache_folder())
    return DOWNLOADED[name](where)

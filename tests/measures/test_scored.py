"""Measures that need the scores of the drawn inputs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from sklearn import metrics

from opmon.errors import InputError
from opmon.estimators.measured import measured
from opmon.types import Labelled
from tests.measures.made import SRS, classified, drawn, estimate, measure

RNG = np.random.default_rng(5)
TRUTH = RNG.choice(["ham", "spam"], 80)
SPAM = np.round(1 / (1 + np.exp(-RNG.normal(size=80) - np.where(TRUTH == "spam", 1, -1))), 2)
SCORES = np.column_stack((1 - SPAM, SPAM))
ROWS = classified(TRUTH.tolist(), np.where(SPAM > 0.5, "spam", "ham").tolist(), SCORES.tolist())
WEIGHTS = RNG.uniform(0.5, 2, 80)
THREE = RNG.dirichlet([1, 1, 1], 90)
OF_THREE = np.array(["a", "b", "c"])[RNG.integers(0, 3, 90)]
ROWS_OF_THREE = classified(OF_THREE.tolist(), np.array(["a", "b", "c"])[THREE.argmax(axis=1)].tolist(), THREE.tolist())

OF_SPAM: list[tuple[str, dict[str, object], Callable[..., float]]] = [
    ("auc", {"class_": "spam"}, metrics.roc_auc_score),
    ("average_precision", {"class_": "spam"}, metrics.average_precision_score),
    ("brier", {}, metrics.brier_score_loss),
    ("log_loss", {}, metrics.log_loss),
]


@pytest.mark.parametrize(("name", "parameters", "other"), OF_SPAM)
def test_the_value_is_that_of_scikit_learn_with_weights_too(
    name: str, parameters: dict[str, object], other: Callable[..., float]
) -> None:
    one = measure(name, **parameters)
    assert estimate(ROWS, one).value == pytest.approx(other(TRUTH == "spam", SPAM))
    assert one.value(ROWS, WEIGHTS) == pytest.approx(other(TRUTH == "spam", SPAM, sample_weight=WEIGHTS))


@pytest.mark.parametrize("name", ["auc", "average_precision"])
def test_without_a_class_it_is_the_mean_over_classes(name: str) -> None:
    other = {"auc": metrics.roc_auc_score, "average_precision": metrics.average_precision_score}[name]
    truth = np.array([one == OF_THREE for one in "abc"]).T
    assert estimate(ROWS_OF_THREE, measure(name)).value == pytest.approx(other(truth, THREE, average="macro"))


@pytest.mark.parametrize("rows", [ROWS, ROWS_OF_THREE])
@pytest.mark.parametrize("name", ["auc", "average_precision", "brier", "log_loss"])
def test_the_influence_is_the_derivative_by_the_weights(name: str, rows: Labelled) -> None:
    one, weights = measure(name), np.random.default_rng(1).uniform(0.5, 2, len(rows))
    weights /= weights.sum()
    influence, step = one.linearised(rows, weights), 1e-6
    assert influence is not None
    for k in range(0, len(rows), 7):
        moved = weights + step * (np.arange(len(rows)) == k)
        assert (one.value(rows, moved) - one.value(rows, weights)) / step == pytest.approx(influence[k], abs=1e-4)


def test_draws_without_scores_do_not_count_and_are_told() -> None:
    scores = SCORES.copy()
    scores[:5] = np.nan
    rows = Labelled(ROWS.answered, ROWS.truth, ROWS.predicted, scores, ROWS.classes)
    found = estimate(rows, measure("brier"))
    assert found.value == pytest.approx(metrics.brier_score_loss(TRUTH[5:] == "spam", SPAM[5:]))
    assert "5 of 80 answered draws have no scores and do not count" in found.notes
    with pytest.raises(InputError, match="Brier score needs the model's scores, and none of the 80 draws has any"):
        estimate(Labelled(ROWS.answered, ROWS.truth, ROWS.predicted, None, ROWS.classes), measure("brier"))


def test_logits_are_not_taken_for_probabilities() -> None:
    rows = Labelled(ROWS.answered, ROWS.truth, ROWS.predicted, 8 * SCORES - 4, ROWS.classes)
    with pytest.raises(InputError, match="log loss takes the scores as probabilities, between 0 and 1"):
        estimate(rows, measure("log_loss"))
    assert estimate(rows, measure("auc")).value == pytest.approx(estimate(ROWS, measure("auc")).value)


def test_a_truth_outside_the_classes_of_the_model_is_named() -> None:
    rows = Labelled(
        ROWS.answered, np.where(np.arange(80) == 3, "eggs", ROWS.truth), ROWS.predicted, SCORES, ROWS.classes
    )
    with pytest.raises(InputError, match="has none for eggs; it has: ham, spam"):
        estimate(rows, measure("log_loss"))


def test_an_infinite_log_loss_is_finite_and_told() -> None:
    rows = classified(["a", "b"] * 6, ["a"] * 12, [[1.0, 0.0]] * 12)
    found = estimate(rows, measure("log_loss"))
    assert found.value == pytest.approx(-math.log(1e-15) / 2)
    assert "the model gave the truth of 6 answers no probability at all: each counts as a loss of 34.5" in found.notes


@pytest.mark.parametrize("name", ["auc", "average_precision"])
def test_one_class_alone_cannot_be_ranked(name: str) -> None:
    rows = classified(["ham"] * 20, ["ham"] * 20, [[0.7]] * 20)
    with pytest.raises(InputError, match="is undefined: it sets inputs of a class against others, and the 20 answers"):
        estimate(rows, measure(name))


def test_a_perfect_ranking_has_a_lower_bound_from_the_smaller_side() -> None:
    truth = ["spam"] * 8 + ["ham"] * 40
    scores = [[0.1, 0.9]] * 8 + [[0.8, 0.2]] * 40
    found = estimate(classified(truth, truth, scores), measure("auc", class_="spam"))
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0.6 < found.low < 0.8
    assert found.notes == ("too few to say: only 8 answered draws are on one of the sides that are compared",)


def test_calibration_error_of_few_draws_is_not_that_of_chance() -> None:
    rng = np.random.default_rng(1)
    values, covered = [], 0
    for _ in range(60):
        sure = rng.uniform(0.5, 1, 150)
        truth = np.where(rng.random(150) < sure, "a", "b")
        rows = classified(truth.tolist(), ["a"] * 150, np.column_stack((sure, 1 - sure)).tolist())
        found = estimate(rows, measure("calibration_error"))
        plain = measure("calibration_error").value(rows, np.ones(150))
        values.append((found.value, plain))
        covered += found.low <= 0.0
    told, plain = np.mean(values, axis=0)
    assert plain > 0.06
    assert told < plain / 2
    assert covered >= 54


def test_calibration_error_below_zero_is_told_and_holds_zero() -> None:
    sure = np.tile(np.linspace(0.55, 0.95, 5), 40)
    right = np.concatenate([np.arange(40) < round(40 * each) for each in np.linspace(0.55, 0.95, 5)])
    truth = np.where(right.reshape(5, 40).T.ravel(), "a", "b")
    rows = classified(truth.tolist(), ["a"] * 200, np.column_stack((sure, 1 - sure)).tolist())
    found = estimate(rows, measure("calibration_error"))
    assert found.low == found.value < 0 < found.high
    assert any("falls below 0 by chance; read it as 0" in note for note in found.notes)


def test_clear_gaps_of_changing_signs_are_found_whole() -> None:
    sure = np.tile(np.linspace(0.55, 0.95, 5), 200)
    off = np.tile([-0.2, 0.2, -0.2, 0.1, -0.2], 200)
    truth = np.where((np.arange(1000) // 5 + 0.5) / 200 < sure + off, "a", "b")
    rows = classified(truth.tolist(), ["a"] * 1000, np.column_stack((sure, 1 - sure)).tolist())
    assert estimate(rows, measure("calibration_error")).value == pytest.approx(0.18, abs=0.01)


def test_calibration_error_finds_what_is_there() -> None:
    rng = np.random.default_rng(2)
    sure = rng.uniform(0.6, 1, 800)
    truth = np.where(rng.random(800) < sure - 0.2, "a", "b")
    rows = classified(truth.tolist(), ["a"] * 800, np.column_stack((sure, 1 - sure)).tolist())
    found = estimate(rows, measure("calibration_error"))
    assert found.low < 0.2 < found.high
    assert found.value == pytest.approx(0.2, abs=0.04)
    assert found.high - found.low < 0.12


def test_a_census_has_no_width() -> None:
    for name in ("auc", "average_precision", "brier", "calibration_error", "log_loss"):
        found = measured(SRS, drawn(ROWS, 80, replacement=False), ROWS, measure(name))
        assert found.low == pytest.approx(found.value) == pytest.approx(found.high), name


@pytest.mark.parametrize(("name", "most"), [("brier", 1.0), ("log_loss", 4.0)])
def test_failures_that_were_not_drawn_bound_the_loss_of_a_confident_model(name: str, most: float) -> None:
    rows = classified(["a"] * 60 + ["b"] * 40, ["a"] * 60 + ["b"] * 40, [[0.99, 0.01]] * 60 + [[0.02, 0.98]] * 40)
    found = estimate(rows, measure(name), size=10**6)
    assert found.value < 0.02
    assert 0.025 * most < found.high < 0.06 * most


def test_probabilities_of_zero_may_hide_more_of_them() -> None:
    sure = classified(["a"] * 60 + ["b"] * 40, ["a"] * 60 + ["b"] * 40, [[1.0, 0.0]] * 60 + [[0.1, 0.9]] * 40)
    found = estimate(sure, measure("log_loss"), size=10**6)
    assert found.value < 0.05
    assert 34.5 * 0.03 < found.high < 34.5 * 0.05

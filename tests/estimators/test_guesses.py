"""Guesses of the truth assist any measure: what they are of each measure, and what they do to its estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opmon import plugins
from opmon.errors import InputError
from opmon.estimators.guesses import Guessed, Guesses, row_by_row
from opmon.estimators.measured import measured
from opmon.types import Draw, Sample
from opmon.types.labelled import Labelled

SRS = plugins.make("estimator", "srs")


def labelled(truth: Any, predicted: Any, classes: tuple[str, ...] = ("a", "b", "c")) -> Labelled:
    return Labelled(np.ones(len(truth), np.bool_), np.array(truth), np.array(predicted), None, classes)


def drawn(positions: list[int], size: int) -> Sample:
    draw = Draw("srs", size, np.array(positions), constants={"replacement": np.array(False)})
    return Sample(draw, np.zeros(len(positions)))


def test_what_is_held_to_be_true_is_the_measure_of_it() -> None:
    said, held = np.array(["a", "a", "b", "b"]), np.array(["a", "b", "b", "a"])
    of = Guessed(said, (said != held) * 1.0, held, np.ones(4, np.bool_))
    proxy = Guesses.of("classification", of, of, 4, ("a", "b")).proxy(
        plugins.make("measure", "recall", {"class": "a"}), 0.7
    )
    assert proxy is not None
    assert proxy.value == pytest.approx([1 - 0.7, 0.0, 0.0, -0.7])
    assert proxy.frame_mean == pytest.approx([-0.4 / 4] * 4)
    assert proxy.mean_variance == 0


def test_where_only_doubt_is_told_each_other_class_may_be_true_as_often_as_it_is_said() -> None:
    said = np.array(["a", "b", "c", "c"])
    of = Guessed(said, np.array([0.4, 0.0, 1.0, np.nan]))
    proxy = Guesses.of("classification", of, of, 4, ("a", "b", "c")).proxy(
        plugins.make("measure", "recall", {"class": "c"}), 0.5
    )
    assert proxy is not None
    shares = np.array([3, 3, 5]) / 11  # twice here, of the draws and of the frame, and once more than that
    of_a = -0.5 * 0.4 * shares[2] / (1 - shares[0])
    assert proxy.value[:3] == pytest.approx([of_a, 0.0, 0.0])
    assert proxy.value[3] == pytest.approx(of_a / 3)  # of which nothing is told: as the others are on average


def test_a_regression_is_off_by_the_root_of_its_expected_square_and_a_score_lacks_what_is_wrong() -> None:
    squares = np.arange(100.0)
    of = Guessed(np.arange(100.0), squares)
    proxy = Guesses.of("regression", of, of, 100).proxy(plugins.make("measure", "mean_squared_error"), 0.0)
    assert proxy is not None
    assert proxy.value[2:98] == pytest.approx(squares[2:98])  # what is farthest out counts as less
    assert 98 < proxy.value[99] < 99
    of = Guessed(np.full(2, np.nan), np.array([0.2, 1.0]))
    proxy = Guesses.of("judged", of, of, 2).proxy(plugins.make("measure", "mean_score"), 0.0)
    assert proxy is not None
    assert proxy.value == pytest.approx([0.8, 0.0])


def test_assisted_by_the_truth_a_mean_is_nearly_that_of_the_frame() -> None:
    rng = np.random.default_rng(1)
    truth, said = rng.normal(size=500), np.zeros(500)
    positions = rng.choice(500, 100, replace=False)
    of = Guessed(said, truth**2, truth, np.ones(500, np.bool_))
    mine = Guessed(said[positions], of.wrong[positions], truth[positions], np.ones(100, np.bool_))
    measure = plugins.make("measure", "mean_absolute_error")
    sample, rows = drawn(positions.tolist(), 500), labelled(truth[positions], said[positions], ())
    alone = measured(SRS, sample, rows, measure)
    found = measured(SRS, sample, rows, measure, guesses=Guesses.of("regression", mine, of, 500))
    assert abs(found.value - np.abs(truth).mean()) < 0.35 * abs(alone.value - np.abs(truth).mean())
    assert 0 < found.half_width < 0.4 * alone.half_width
    assert found.method == f"{alone.method}/model-assisted"
    assert any("narrower than by the labels alone" in note for note in found.notes)


def test_a_census_and_answers_that_do_not_vary_are_left_alone() -> None:
    truth, said = np.array(["a", "b"] * 10), np.array(["a"] * 20)
    of = Guessed(said, (said != truth) * 1.0, truth, np.ones(20, np.bool_))
    guesses, measure = (
        Guesses.of("classification", of, of, 20, ("a", "b")),
        plugins.make("measure", "f1", {"class": "a"}),
    )
    whole = measured(SRS, drawn([*range(20)], 20), labelled(truth, said), measure, guesses=guesses)
    assert whole.low == whole.value == whole.high
    right = np.array(["a"] * 10)
    of = Guessed(right, np.zeros(10), right, np.ones(10, np.bool_))
    some = Guesses.of("classification", of, of, 40, ("a", "b"))
    alone = measured(SRS, drawn([*range(10)], 40), labelled(right, right), measure)
    found = measured(SRS, drawn([*range(10)], 40), labelled(right, right), measure, guesses=some)
    assert (found.low, found.value, found.high) == (alone.low, alone.value, alone.high)
    assert any("cannot assist" in note or "says nothing" in note for note in found.notes)


def test_a_function_that_is_a_mean_is_known_by_its_values_of_single_rows() -> None:
    rows, weights = labelled(["a", "b", "a"], ["a", "a", "a"]), np.array([1.0, 2.0, 3.0])
    mean = plugins.make("measure", "function", {"path": "tests.estimators.test_guesses:right"})
    assert row_by_row(mean, rows, weights) == pytest.approx([1.0, 0.0, 1.0])
    other = plugins.make("measure", "function", {"path": "tests.estimators.test_guesses:squared"})
    assert row_by_row(other, rows, weights) is None


def right(truth: Any, prediction: Any, scores: Any, weight: Any) -> float:
    return float(np.average(truth == prediction, weights=weight))


def squared(truth: Any, prediction: Any, scores: Any, weight: Any) -> float:
    return right(truth, prediction, scores, weight) ** 2


def test_guesses_for_no_input_are_an_error() -> None:
    of = Guessed(np.array(["a"]), np.array([0.0]))
    with pytest.raises(InputError, match="guesses for 1 to 5 inputs"):
        Guesses.of("classification", of, Guessed(np.empty(0, np.str_), np.empty(0)), 5, ("a",))

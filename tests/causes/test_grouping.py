from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from opmon.causes import Measurements, Values, failure_groups
from opmon.causes.confusions import confusions
from opmon.errors import InputError

SIZE = 600


def world(seed: int = 0) -> tuple[NDArray[Any], dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Labelled inputs with three causes: a broken column, a segment of two columns, a column in another unit."""
    rng = np.random.default_rng(seed)
    columns: dict[str, NDArray[Any]] = {
        "age": rng.integers(18, 90, SIZE).astype(float),
        "country": rng.choice(["DE", "FR", "US"], SIZE).astype(object),
        "height": rng.normal(170, 10, SIZE).round(),
        "income": rng.normal(3000, 800, SIZE).round(),
    }
    cause = np.full(SIZE, "none", dtype=object)
    cause[(columns["age"] > 60) & (columns["country"] == "DE")] = "segment"
    free = np.flatnonzero(cause == "none")
    cause[rng.choice(free, 60, replace=False)] = "broken"
    cause[rng.choice(np.flatnonzero(cause == "none"), 60, replace=False)] = "unit"
    columns["income"][cause == "broken"] = np.nan
    columns["height"][cause == "unit"] /= 2.54
    rate = np.select([cause == "none"], [0.05], 0.75)
    return cause, columns, rng.random(SIZE) < rate


def features(columns: dict[str, NDArray[Any]]) -> list[Measurements | Values]:
    return [
        Values(name, values) if values.dtype == object else Measurements(name, values)
        for name, values in columns.items()
    ]


def test_causes_that_were_put_in_are_found_and_named() -> None:
    from sklearn.metrics import adjusted_mutual_info_score

    cause, columns, failed = world()
    grouping = failure_groups(features(columns), failed)
    named = {" and ".join(group.words) for group in grouping.groups if group.kind == "condition"}
    assert len(named) == 3
    assert "income missing" in named
    assert any(words.startswith("height up to ") for words in named)
    assert any("country = DE" in words and "age over" in words for words in named)
    assert adjusted_mutual_info_score(cause[failed].astype(str), grouping.labels()[failed]) > 0.6


def test_each_failure_is_in_one_group_and_right_answers_in_none() -> None:
    _, columns, failed = world(1)
    grouping = failure_groups(features(columns), failed)
    assert (sum(group.failures.astype(int) for group in grouping.groups) == failed).all()
    assert ((grouping.labels() >= 0) == failed).all()


def test_lifts_are_over_what_no_cause_holds_for_and_bounded_from_below() -> None:
    _, columns, failed = world(2)
    for group in failure_groups(features(columns), failed).groups:
        if group.kind == "condition":
            assert group.lift is not None
            assert group.lift_at_least is not None
            assert group.p is not None
            assert 1 < group.lift_at_least < group.lift
            assert group.p < 0.05


def test_without_a_cause_one_is_seldom_named() -> None:
    named = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        columns: dict[str, NDArray[Any]] = {f"x{k}": rng.normal(size=300) for k in range(8)}
        columns["word"] = rng.choice(list("abcde"), 300).astype(object)
        weights = rng.choice([1.0, 4.0], 300)
        groups = failure_groups(features(columns), rng.random(300) < 0.2, weights, seed=seed).groups
        named += any(group.kind == "condition" for group in groups)
    assert named <= 9  # more comes once in 1,000 times where the probability is 5 %


def test_heavier_draws_count_for_more() -> None:
    _, columns, failed = world(3)
    weights = np.where(columns["country"] == "US", 3.0, 1.0)
    twice = failure_groups(features(columns), failed, weights)
    again = failure_groups(features(columns), failed, 10 * weights)
    assert [group.words for group in twice.groups] == [group.words for group in again.groups]


def test_confused_classes_group_what_nothing_else_explains() -> None:
    rng = np.random.default_rng(0)
    truth = rng.choice(list("abcdef"), 500)
    said = truth.copy()
    wrong = rng.random(500) < 0.1
    said[wrong] = rng.choice(list("abcdef"), int(wrong.sum()))
    coats = (truth == "b") & (rng.random(500) < 0.5)
    said[coats] = "a"
    groups = failure_groups([], said != truth, predicted=list(said), truth=list(truth)).groups
    assert ("predicted a, truly b",) in [group.words for group in groups]


def test_two_classes_cannot_be_confused_too_often() -> None:
    assert confusions(["a", "a", "b"] * 9, ["b", "b", "a"] * 9) == []


def test_a_pair_that_comes_too_often_is_a_confusion() -> None:
    pairs = [(a, b) for a in "abcde" for b in "abcde" if a != b]
    said, true = ([pair[side] for pair in pairs * 2] + ["ab"[side]] * 15 for side in (0, 1))
    (found,) = confusions(said, true)
    assert (found.predicted, found.truth) == ("a", "b")


@pytest.mark.parametrize("failed", [np.zeros(20, bool), np.ones(20, bool), np.arange(20) < 3])
def test_nothing_is_made_of_too_little(failed: NDArray[np.bool_]) -> None:
    groups = failure_groups([Measurements("x", np.arange(20.0))], failed).groups
    assert [group.kind for group in groups] == ["rest"] * bool(failed.any())


def test_features_of_another_length_are_an_error() -> None:
    with pytest.raises(InputError, match="one value for each labelled input: 20; 'x' has 3"):
        failure_groups([Measurements("x", np.arange(3.0))], np.ones(20, bool))

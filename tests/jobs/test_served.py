"""Predictions that production logged in other words, of other inputs, or in another unit: each is told, none judged."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opmon.errors import SourceError
from opmon.jobs.served import Skew, served
from opmon.spellings import Spellings

OWN = np.array(["paid"] * 900 + ["default"] * 100)
CLASSES = ("default", "paid")
VALUES = np.random.default_rng(0).gamma(2, 50, 1000)


def said(
    logged: Any, own: Any = OWN, classes: tuple[str, ...] | None = CLASSES, problem: str = ""
) -> tuple[pa.Table, Skew]:
    found = served("said", pa.array(logged), own, classes, problem or "classification")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("logged", "told"),
    [
        ((OWN == "default").astype(int), ["0 (900), 1 (100), 1000 of 1000", "They look like the numbers"]),
        ((OWN == "default").astype(float), ["0 (900), 1 (100)"]),
        (OWN == "default", ["false (900), true (100)"]),
        (np.char.upper(OWN), ["PAID (900), DEFAULT (100)", "Upper and lower case count"]),
        (np.where(OWN == "paid", "paid", "bad"), ["bad (100), 100 of 1000"]),
        (np.linspace(0, 1, 1000), ["They look like probabilities"]),
        (np.arange(1000) + 7, ["7 (1), 8 (1), 9 (1), 10 (1), …"]),
    ],
    ids=["numbers", "floats", "truth", "case", "a rare class", "scores", "ids"],
)
def test_predictions_in_other_words_are_refused_with_both_vocabularies(logged: Any, told: list[str]) -> None:
    with pytest.raises(SourceError, match="the model's classes are default, paid") as caught:
        said(logged)[1].require(1.0)
    assert all(text in str(caught.value) for text in ["column 'said'", *told])


def test_the_same_classes_in_any_form_are_the_same() -> None:
    for logged in ([1, 0, 2], [1.0, 0.0, 2.0], ["1", " 0", "2.0"], pa.array(["1", "0", "2"]).dictionary_encode()):
        table, skew = said(logged, np.array(["1", "0", "0"]), ("0", "1", "2"))
        skew.require(0.4)
        assert skew.share == pytest.approx(1 / 3)
        assert table["prediction"].to_pylist() == ["1", "0", "2"]


def test_a_stray_answer_in_a_thousand_stops_nothing() -> None:
    logged = OWN.astype(object)
    logged[3] = "ERROR"
    table, skew = said(logged)
    skew.require(0.3)
    assert (sum(table["stray"].to_pylist()), skew.share) == (1, 0)
    assert skew.losses == {"column 'said' holds 'ERROR', which is none of the model's classes": 1}
    logged[4] = "timeout"
    with pytest.raises(SourceError, match=r"ERROR \(1\), timeout \(1\), 2 of 1000"):
        said(logged)[1].require(1.0)


def test_what_was_not_logged_is_the_models_own() -> None:
    assert served("said", pa.array([None, "", " "]), OWN[:3], CLASSES, "classification") is None
    table, _ = said([None, "default", ""] + ["paid"] * 997)
    assert table["prediction"].to_pylist()[:3] == ["paid", "default", "paid"]
    assert sum(table["logged"].to_pylist()) == 998


def test_a_skew_above_the_limit_is_told_with_both_answers() -> None:
    swapped = np.where(OWN == "paid", "default", "paid")
    with pytest.raises(
        SourceError, match=r"production: default \(900\), paid \(100\); the model: paid \(900\)"
    ) as told:
        said(swapped)[1].require(0.3)
    assert "100 % of 1000 inputs, and round.max_skew is 0.3" in str(told.value)
    said(swapped)[1].require(1.0)


@pytest.mark.parametrize(("count", "stops"), [(1, False), (4, False), (5, True)])
def test_a_few_predictions_say_nothing_of_the_skew(count: int, stops: bool) -> None:
    found = said(["default"] * count + [None] * (1000 - count))
    assert found[1].share == 1
    with pytest.raises(SourceError, match="max_skew") if stops else nullcontext():
        found[1].require(0.3)


def test_predictions_of_other_inputs_are_no_more_alike_than_chance_makes_them() -> None:
    shuffled = np.random.default_rng(0).permutation(OWN)
    found = said(shuffled)
    assert found[1].share == pytest.approx(0.18, abs=0.02), "few classes: a limit on the share alone does not see it"
    assert found[1].by_chance == pytest.approx(0.18)
    assert said(OWN[:20], OWN[:20])[1].by_chance is None


@pytest.mark.parametrize("value", [{"a": 1}, [1], b"\xff"])
def test_a_column_that_can_be_no_prediction_is_named(value: Any) -> None:
    with pytest.raises(SourceError, match="column 'said' is"):
        said([value] * 3, OWN[:3])


def numbers(logged: Any) -> Skew:
    return said(logged, VALUES, None, "regression")[1]


def test_rounded_numbers_are_no_skew_and_another_version_stops_nothing() -> None:
    assert numbers(np.round(VALUES)).share == 0
    assert numbers(VALUES.astype(np.float32)).share == 0
    other = numbers(VALUES + np.random.default_rng(1).normal(0, 20, 1000))
    assert other.share > 0.9  # type: ignore[operator]
    other.require(0.3)


@pytest.mark.parametrize(
    "logged", [VALUES / 1000, VALUES + 273, np.log(VALUES), np.random.default_rng(0).permutation(VALUES)]
)
def test_numbers_in_another_unit_or_of_other_inputs_are_refused(logged: Any) -> None:
    with pytest.raises(SourceError, match=r"far from the registered model's answers \(in the middle"):
        numbers(logged).require(0.3)


def test_text_that_is_no_number_is_told() -> None:
    with pytest.raises(SourceError, match="does not hold numbers"):
        numbers(["many"] * 1000)


def test_production_may_spell_the_classes_otherwise() -> None:
    spellings = Spellings.of({"paid": [0, "PAID"], "default": [1, "late"]})
    logged = np.where(OWN == "paid", 0, 1)
    for column in (logged, logged.astype(float), logged.astype(str), np.where(OWN == "paid", "PAID", "late")):
        found = served("said", pa.array(column), OWN, CLASSES, "classification", spellings)
        assert found is not None
        table, skew = found
        skew.require(0.01)
        assert (skew.share, set(table["prediction"].to_pylist())) == (0, {"paid", "default"})
    strange = served("said", pa.array(np.full(1000, 2)), OWN, CLASSES, "classification", spellings)
    assert strange is not None
    with pytest.raises(SourceError, match=r"2 \(1000\).*such as classes: \{default: 0, paid: 1\}"):
        strange[1].require(1.0)


def test_production_may_log_the_score_that_decided() -> None:
    scores = np.where(OWN == "paid", 0.7, 0.3)
    scores[0] = 0.6  # at the threshold
    found = served("p", pa.array(scores), OWN, CLASSES, "classification", threshold=0.6)
    assert found is not None
    table, skew = found
    assert (skew.share, table["prediction"].to_pylist()) == (0, OWN.tolist())


@pytest.mark.parametrize(
    ("scores", "classes", "threshold", "told"),
    [
        ([0.2, 1.5], CLASSES, 0.5, "'p' holds 1.5, which is no probability, and columns.threshold is 0.5"),
        ([0.2, 0.5], ("a", "b", "c"), 0.5, "decides between two classes, and there are 3"),
        ([0.2, 0.5], None, 0.5, "and they are not known"),
        (["x", "y"], CLASSES, 0.5, "does not hold numbers"),
    ],
)
def test_a_threshold_that_decides_nothing_is_told(scores: Any, classes: Any, threshold: float, told: str) -> None:
    with pytest.raises(SourceError, match=told):
        served("p", pa.array(scores), OWN[:2], classes, "classification", threshold=threshold)


def test_classes_that_are_logged_as_half_floats_are_whole_numbers() -> None:
    own = np.array(["1"] * 900 + ["0"] * 100)
    logged = pa.array(own.astype(np.float16))
    table, skew = said(logged, own, ("0", "1"))
    assert (skew.differs, table["prediction"].to_pylist() == own.tolist()) == (0, True)

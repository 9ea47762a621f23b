from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, rotate

from opmon.causes import Measurements, Values, features_of, picture_features, text_features
from opmon.causes.conditions import conditions_of


def test_columns_become_numbers_and_words_and_names_and_times_nothing() -> None:
    rows = [
        {"age": k, "country": "DE" if k % 2 else None, "id": f"in-{k}", "at": "2026-03-01T10:00:00", "ok": k % 3 == 0}
        for k in range(30)
    ]
    found = {feature.name: feature for feature in features_of(rows)}
    assert set(found) == {"age", "country", "ok"}
    assert type(found["age"]) is Measurements
    assert type(found["country"]) is Values


def test_words_say_exactly_what_holds() -> None:
    values = np.random.default_rng(0).normal(50, 20, 400)
    for condition in conditions_of([Measurements("age", values)]):
        name, word, _, cut = (
            (condition.words.replace("up to", "up-to 0")).split()[:4]
            if "up to" in condition.words
            else (*condition.words.split()[:2], "", condition.words.split()[2])
        )
        held = values > float(cut) if word == "over" else values <= float(cut)
        assert name == "age"
        assert (held == condition.members).all()


def test_a_number_that_comes_often_is_a_condition_of_its_own() -> None:
    values = np.concatenate((np.zeros(30), np.random.default_rng(0).normal(50, 10, 200)))
    assert "income = 0" in {each.words for each in conditions_of([Measurements("income", values)])}


def pictures() -> NDArray[np.float64]:
    """Upright crosses of different width."""
    rng = np.random.default_rng(0)
    made = np.zeros((80, 28, 28))
    for picture in made:
        wide = rng.integers(2, 5)
        picture[6:22, 14 - wide : 14 + wide] = 0.8
        picture[12 : 12 + wide, 5:23] = 0.8
    return made


@pytest.mark.parametrize(
    ("name", "harm", "words"),
    [
        ("edges", lambda some: gaussian_filter(some, (0, 2, 2)), "blur in the pictures"),
        ("grain", lambda some: some + np.random.default_rng(1).normal(0, 0.2, some.shape), "noise in the pictures"),
        ("brightness", lambda some: some * 0.3, "dark pictures"),
        ("turn", lambda some: rotate(some, 40, axes=(2, 1), reshape=False, order=1), "turned pictures"),
        ("right", lambda some: np.roll(some, 5, axis=2), "pictures that are shifted to the right"),
    ],
)
def test_what_is_wrong_with_pictures_is_measured(name: str, harm: object, words: str) -> None:
    some = pictures()
    some[:20] = np.clip(harm(some[:20]), 0, 1)  # type: ignore[operator]
    (feature,) = (each for each in picture_features(list(some)) if each.name == name)
    harmed, usual = feature.values[:20], feature.values[20:]
    if feature.below == words:
        harmed, usual = -harmed, -usual
    else:
        assert feature.above == words
    assert (harmed[:, None] > usual[None, :]).mean() > 0.95


@pytest.mark.parametrize("shape", [(8, 600), (16, 1000), (1500, 28), (4, 5000), (64, 4000, 3), (4, 4)], ids=str)
def test_a_long_thin_picture_is_measured_beside_others(shape: tuple[int, ...]) -> None:
    usual = list(pictures()[:30])
    found = picture_features([*usual, np.random.default_rng(0).random(shape)])
    assert {each.name for each in found} > {each.name for each in picture_features(usual)}
    assert all(np.isfinite(each.values[-1]) for each in found)


def test_pictures_may_be_missing_and_of_several_sizes_and_colours() -> None:
    some = [np.zeros((8, 8)), None, np.random.default_rng(0).random((200, 100, 3)), np.ones((2, 2))]
    (brightness,) = (each for each in picture_features(some) if each.name == "brightness")
    assert np.isfinite(brightness.values).tolist() == [True, False, True, False]
    assert picture_features([None, None]) == []


def test_each_class_of_pictures_is_held_against_its_own() -> None:
    some = [*(np.full((8, 8), 0.1 + 0.001 * k) for k in range(20)), *(np.full((8, 8), 0.9) for _ in range(20))]
    (brightness,) = (
        each for each in picture_features(some, ["shoe"] * 20 + ["shirt"] * 20) if each.name == "brightness"
    )
    assert abs(float(np.median(brightness.values[:20]))) < 1e-6
    assert abs(float(np.median(brightness.values[20:]))) < 1e-6


def test_words_of_texts_are_features_and_capitals() -> None:
    texts = [f"please refund order {k} at once" if k % 2 else f"THANK YOU FOR PARCEL {k} today" for k in range(60)]
    named = {each.words for each in conditions_of(text_features("text", texts))}
    assert "“refund” in text" in named
    assert "many capitals in text" in named
    assert not any("missing" in words for words in named)

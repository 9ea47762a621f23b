"""The error model: its arithmetic against derivatives, and what it finds of simulated teams."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.annotators import Coded, Opinion, fit
from opmon.annotators._layout import Layout
from opmon.annotators._rows import rows
from opmon.errors import InputError
from tests.annotators.teams import World


def mixed(count: int, seed: int = 0) -> list[Opinion]:
    """Opinions of every kind: one to three answers, with and without known truth, of two groups."""
    rng = np.random.default_rng(seed)
    return [
        Opinion(
            {f"a{who}": str(rng.integers(0, 4)) for who in rng.permutation(4)[: rng.integers(1, 4)]},
            "0",
            str(rng.integers(0, 4)) if rng.random() < 0.3 else None,
            int(rng.random() < 0.3),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("classes", [2, 6])
def test_the_gradient_is_that_of_the_likelihood(classes: int) -> None:
    coded = Coded.of(mixed(60))
    layout = Layout(2, 4, classes)
    at = np.random.default_rng(1).normal(size=layout.size) * 0.5
    if layout.many:
        at[layout.harder + 1] = 1.2
    slope = rows(coded, layout, at).slope
    for k, step in enumerate(1e-6 * np.eye(layout.size)):
        by_difference = (rows(coded, layout, at + step).value - rows(coded, layout, at - step).value) / 2e-6
        np.testing.assert_allclose(slope[:, k], by_difference, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_probabilities_of_all_patterns_sum_to_one(classes: int) -> None:
    """Of two answers, by whether each is the model's and whether they are the same."""
    patterns = [("p", "p"), ("p", "x"), ("x", "p"), ("x", "x"), *([("x", "y")] if classes > 2 else [])]
    coded = Coded.of([Opinion({"ann": one, "ben": two}, "p") for one, two in patterns])
    layout = Layout(1, 2, classes)
    at = np.zeros(layout.size)
    at[:3] = -1.3, -2.0, 0.4
    if layout.many:
        at[layout.harder + 1] = np.log(classes - 1)
    assert np.exp(rows(coded, layout, at).value).sum() == pytest.approx(1.0)


def test_errors_are_found_from_gold_tasks() -> None:
    right, wrong = Opinion({"ann": "1"}, "1", "1", 0), Opinion({"ann": "2"}, "1", "1", 0)
    model = fit(Coded.of([right] * 900 + [wrong] * 100), np.ones(1000), classes=5)
    (ann,) = model.errors()
    assert ann.error == pytest.approx(0.1, abs=0.005)
    assert ann.low < 0.1 < ann.high
    assert ann.high - ann.low < 0.05
    assert ann.checked == 1000


def test_a_gold_task_whose_prediction_is_not_known_counts_as_well() -> None:
    right, wrong = Opinion({"ann": "1"}, None, "1"), Opinion({"ann": "2"}, None, "1")
    (ann,) = fit(Coded.of([right] * 900 + [wrong] * 100), np.ones(1000), classes=5).errors()
    assert ann.error == pytest.approx(0.1, abs=0.005)


def test_the_careless_one_is_told_from_the_others() -> None:
    rng = np.random.default_rng(2)
    error = {"ann": 0.02, "ben": 0.02, "cem": 0.25}
    opinions = []
    for _ in range(400):
        truth = int(rng.integers(5))
        pair = rng.permutation(list(error))[:2]
        said = {name: str(truth if rng.random() >= error[name] else (truth + rng.integers(1, 5)) % 5) for name in pair}
        opinions.append(Opinion(said, str(truth if rng.random() < 0.9 else (truth + 1) % 5)))
    found = {each.annotator: each for each in fit(Coded.of(opinions), np.ones(400), classes=5).errors()}
    assert found["cem"].low > max(found["ann"].high, found["ben"].high)
    for name, true in error.items():
        assert found[name].low < true < found[name].high


def test_weights_are_so_many_rows() -> None:
    some = mixed(40, seed=3)
    twice = fit(Coded.of(some + some), np.ones(80), classes=6)
    weighed = fit(Coded.of(some), 2 * np.ones(40), classes=6)
    np.testing.assert_allclose(twice.parameters, weighed.parameters, atol=2e-3)


def test_the_search_does_not_end_where_everybody_errs() -> None:
    """Half of all inputs wrong and two fifths of all answers is as simple a story, and a far less likely one."""
    rng = np.random.default_rng([2, 400, 2])
    world = World.of(classes=2, error=0.2)
    _, opinions = world.labelled(world.draw("srs", 400, rng), 2, rng)
    model = fit(Coded.of(list(opinions.values())), np.ones(400), classes=2)
    assert model.failure_rate == pytest.approx(0.1, abs=0.08)


def test_nothing_known_is_no_trouble() -> None:
    """Everybody alike, everybody different, one row, and many annotators with one answer each."""
    for some in (
        [Opinion({"ann": "1", "ben": "1"}, "1")] * 5,
        [Opinion({"ann": "1", "ben": "2", "cem": "3"}, "4")] * 5,
        [Opinion({"ann": "1"}, "2")],
        [Opinion({f"a{k}": "1", f"b{k}": "2"}, "1") for k in range(60)],
        [Opinion({}, "1", "2")],
    ):
        model = fit(Coded.of(some), np.ones(len(some)), classes=10)
        assert np.isfinite(model.parameters).all()
        assert np.isfinite(model.covariance).all()
        assert all(0 <= each.low <= each.error <= each.high <= 1 for each in model.errors())


def test_wrong_sizes_are_errors() -> None:
    coded = Coded.of(mixed(3))
    with pytest.raises(InputError, match="one weight per row"):
        fit(coded, np.ones(2), classes=5)
    with pytest.raises(InputError, match="at least two classes"):
        fit(coded, np.ones(3), classes=1)

"""From a model and inputs to answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opmon import plugins
from opmon.errors import InputError
from opmon.robustness.codecs import Pictures, Unchanged
from opmon.robustness.evaluation import Evaluation
from opmon.robustness.measured import Plan
from opmon.robustness.quality import kernel_distance, population_shift, text_distance
from opmon.robustness.result import Tomography
from opmon.robustness.run import Subject
from opmon.robustness.running import Budget
from opmon.robustness.space import Space
from opmon.robustness.tomography import tomography


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, Any]:
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    images, targets = load_digits(return_X_y=True)
    learner = LogisticRegression(max_iter=300).fit(images[:1000] / 16, targets[:1000])
    return learner, images[1000:], targets[1000:]


@pytest.fixture(scope="module")
def mapped(digits: tuple[Any, Any, Any]) -> Tomography:
    learner, images, targets = digits
    names = ("zoom", "brightness", "gaussian-blur")
    return tomography(
        lambda x: learner.decision_function(x / 16),
        Evaluation(images, targets),
        [plugins.make("perturbation", f"image.{name}") for name in names],
        Space(names),
        Pictures.like(images),
        quality=kernel_distance(lambda x: x),
        quality_inputs=100,
    )


def test_pictures_end_to_end(digits: tuple[Any, Any, Any], mapped: Tomography) -> None:
    learner, images, targets = digits
    assert mapped.share[0] == (learner.predict(images / 16) == targets).mean()
    assert mapped.measured.sum() == 91 + 24
    assert 0.5 < mapped.saved < 1
    assert ((mapped.low <= mapped.share) & (mapped.share <= mapped.high)).all()


def test_aggregate_is_the_mean_of_the_tests(mapped: Tomography) -> None:
    answer = mapped.ask("zoom == 2")
    rows = mapped.tests.severities[:, 0] == 2
    assert answer.value == pytest.approx(mapped.share[rows].mean())
    assert answer.measured + answer.predicted == rows.sum() == answer.tests
    assert answer.population_low <= answer.low <= answer.value <= answer.high <= answer.population_high


def test_worst_tests_come_first(mapped: Tomography) -> None:
    worst = mapped.ask("all", worst=3).worst
    assert [case.share for case in worst] == sorted(mapped.share)[:3]


def test_one_test_has_its_own_interval(mapped: Tomography) -> None:
    row = int(np.flatnonzero((mapped.tests.order == 3) & ~mapped.measured)[0])
    text = " and ".join(
        f"{name} == {s}" for name, s in zip(mapped.space.names, mapped.tests.severities[row], strict=True)
    )
    answer = mapped.ask(text)
    assert answer.predicted == 1
    assert answer.high - answer.low == pytest.approx(mapped.high[row] - mapped.low[row], rel=0.25, abs=0.01)


def test_mean_of_many_is_surer_than_one(mapped: Tomography) -> None:
    one = mapped.high - mapped.low
    many = mapped.ask("order == 3")
    assert many.high - many.low <= one[mapped.tests.order == 3].mean()


def test_quality_can_be_asked(mapped: Tomography) -> None:
    assert mapped.quality is not None
    near = mapped.ask(f"quality <= {np.median(mapped.quality):.4f}")
    assert near.value > mapped.ask("all").value


def test_pair_and_curve(mapped: Tomography) -> None:
    share, measured = mapped.pair(0, 2)
    assert share.shape == (6, 6)
    assert measured.all()
    assert share[0, 0] == mapped.share[0]
    curve = mapped.by_severity_sum()
    assert [point[0] for point in curve] == list(range(16))
    assert curve[0][1] == mapped.share[0] > curve[-1][1]


def test_question_that_no_test_meets(mapped: Tomography) -> None:
    with pytest.raises(InputError, match="no test"):
        mapped.ask("zoom > 3 and zoom < 2")


def test_against_the_full_truth(digits: tuple[Any, Any, Any], mapped: Tomography) -> None:
    learner, images, targets = digits
    names = mapped.space.names
    made = [plugins.make("perturbation", f"image.{name}") for name in names]
    full = tomography(
        lambda x: learner.decision_function(x / 16), Evaluation(images, targets), made, mapped.space,
        Pictures.like(images), plan=Plan(half_width=None), budget=Budget(125),
    )  # fmt: skip
    assert full.saved == 0
    assert np.abs(mapped.share - full.share).mean() < 0.02
    for name in ("Q1", "Q3", "Q5", "Q7", "Q12"):
        assert abs(mapped.ask(name).value - full.ask(name).value) < 0.02


@pytest.mark.parametrize("half_width", [None, 0.03])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_test_of_all_inputs_is_told_as_counted(half_width: float | None, weighted: bool) -> None:
    rng = np.random.default_rng(0)

    def model(values: np.ndarray) -> np.ndarray:
        return (values.sum(axis=1) > 2).astype(int)

    inputs, names, plan = rng.normal(1, 1, (300, 3)), ("noise", "shift", "scale"), Plan(half_width)
    weights = rng.gamma(2.0, 1.0, 300) if weighted else None
    evaluation = Evaluation(inputs, model(inputs), weights)
    made = [plugins.make("perturbation", f"table.{name}") for name in names]
    found = tomography(model, evaluation, made, Space(names), Unchanged(), plan=plan)
    subject = Subject.of(model, evaluation, made, Unchanged(), plan)
    whole = np.flatnonzero(found.seen == 300)
    assert ((found.tests.order >= 3) & (found.seen == 300)).any() or half_width is not None
    for row in whole.tolist():
        right = model(subject.perturbed(found.tests.steps(row), 300)) == subject.truth
        assert found.share[row] == pytest.approx(np.average(right, weights=subject.evaluation.weights), abs=1e-9)
    for alike in (found.low, found.high):
        assert alike[whole] == pytest.approx(found.share[whole], abs=1e-9)
    assert not found.error[whole].any()
    assert not found.shared[whole].any()


def test_text_end_to_end() -> None:
    words = np.array(
        [f"the {'good' if i % 2 else 'bad'} film number {i} does not end well" for i in range(120)], object
    )
    names = ("typos", "synonym", "contraction", "punctuation")
    result = tomography(
        lambda texts: np.array([1 if "good" in text else 0 for text in texts]),
        Evaluation(words, np.arange(120) % 2),
        [plugins.make("perturbation", f"text.{name}") for name in names],
        Space(names, max_order=3),
        Unchanged(),
        quality=text_distance,
        quality_inputs=20,
    )
    assert result.share[0] == 1
    assert 0.4 < result.ask("typos == 5").value < 1
    assert result.ask("punctuation > 0 and order == 1").value == pytest.approx(1, abs=1e-4)


def test_table_with_weights_and_regression() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(300, 4))
    truth = table @ np.array([1.0, 0.5, 0, 0])
    names = ("noise", "shift", "missing")
    result = tomography(
        lambda x: x @ np.array([1.0, 0.5, 0, 0]),
        Evaluation(table, truth, rng.gamma(2.0, 1.0, 300), "regression", 0.5),
        [plugins.make("perturbation", f"table.{name}") for name in names],
        Space(names),
        Unchanged(),
        quality=population_shift,
    )
    assert result.share[0] == pytest.approx(1)
    assert result.share[-1] < 0.5
    assert result.effective_inputs < 300


def test_single_perturbation() -> None:
    inputs = np.random.default_rng(0).normal(size=(100, 2))
    result = tomography(
        lambda x: (x[:, 0] > 0).astype(int), Evaluation(inputs), [plugins.make("perturbation", "table.noise")],
        Space(("noise",)), Unchanged(),
    )  # fmt: skip
    assert len(result.tests) == 6
    assert result.ask("P1 == 5").value < 1


def test_one_perturbation_for_each_name() -> None:
    with pytest.raises(InputError, match="one perturbation for each"):
        tomography(lambda x: x, Evaluation(np.zeros((4, 2))), [], Space(("a",)), Unchanged())


def test_same_seed_same_result(synthetic: Callable[..., Any]) -> None:
    inputs = np.random.default_rng(0).normal(size=(200, 2))
    names = ("noise", "shift", "swap")
    found = [
        tomography(
            lambda x: (x.sum(axis=1) > 0).astype(int), Evaluation(inputs),
            [plugins.make("perturbation", f"table.{name}") for name in names], Space(names), Unchanged(),
            plan=Plan(seed=3),
        ).share
        for _ in range(2)
    ]  # fmt: skip
    assert np.array_equal(*found)

from __future__ import annotations

import numpy as np
import pytest

from opmon import plugins
from opmon.errors import InputError
from opmon.estimators.ratios import class_accuracy, precision, ratio, recall, slice_accuracy
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.testing.populations import classifier
from opmon.types import Draw, Sample

SRS = SimpleRandomEstimator()


def srs(outcomes: list[float], N: int = 1000) -> Sample:
    return Sample(
        Draw("srs", N, np.arange(len(outcomes)), constants={"replacement": np.array(True)}), np.array(outcomes)
    )


def test_slice_of_a_simple_random_sample_is_the_plain_share() -> None:
    sample = srs([1, 0, 0, 1, 1, 0])
    found = slice_accuracy(SRS, sample, np.array([True, True, True, True, False, False]), "night")
    assert found.value == pytest.approx(0.5)
    assert found.n == 4
    assert found.quantity == "accuracy[night]"


def test_slice_of_everything_is_the_estimate_itself() -> None:
    sample = srs([1, 0, 0, 1, 1, 0, 0, 0])
    found, whole = slice_accuracy(SRS, sample, np.ones(8, dtype=bool), "all"), SRS.estimate(sample)
    assert found.value == pytest.approx(whole.value)
    assert found.standard_error == pytest.approx(whole.standard_error)


def test_precision_and_recall_worked_by_hand() -> None:
    truth = np.array(["cat", "cat", "dog", "dog", "cat", "dog"])
    predicted = np.array(["cat", "dog", "cat", "dog", "cat", "dog"])
    sample = srs((truth != predicted).astype(float).tolist())
    assert precision(SRS, sample, predicted, truth, "cat").value == pytest.approx(2 / 3)
    assert recall(SRS, sample, predicted, truth, "cat").value == pytest.approx(2 / 3)
    assert precision(SRS, sample, predicted, truth, "dog").quantity == "precision[dog]"


def test_class_accuracy_leaves_out_classes_without_an_answer() -> None:
    found = class_accuracy(SRS, srs([1, 0, np.nan, 0]), np.array([3, 3, 5, 7]))
    assert {name: estimate.value for name, estimate in found.items()} == {3: 0.5, 7: 1.0}


def test_slice_without_an_answer_is_an_error() -> None:
    with pytest.raises(InputError, match="night"):
        slice_accuracy(SRS, srs([1, 0]), np.array([False, False]), "night")


def test_ratio_wants_one_entry_per_draw() -> None:
    with pytest.raises(InputError, match="per draw"):
        ratio(SRS, srs([1, 0]), np.zeros(3), np.ones(3, dtype=bool), "x")


@pytest.mark.parametrize("name", ["srs", "sups", "ssrs", "deepest", "two_stage", "rhc"])
def test_slices_are_covered_under_every_design(name: str) -> None:
    population = classifier(size=3000, accuracy=0.85, seed=2)
    members = population.frame.predictions < 3  # type: ignore[operator]
    truth = 1 - population.outcomes[members].mean()
    sampler, estimator = plugins.make("sampler", name), plugins.make("estimator", name)
    held, errors = 0, []
    for seed in range(150):
        draw = sampler.draw(population.frame, 200, np.random.default_rng(seed))
        found = slice_accuracy(estimator, population.answer(draw), members[draw.positions], "low")
        held += found.low <= truth <= found.high
        errors.append(found.value - truth)
    assert held >= 132  # binomial, 150 at 0.95: below this once in 1500
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(150)

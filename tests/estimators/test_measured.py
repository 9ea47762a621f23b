from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opmon import plugins
from opmon.errors import InputError
from opmon.estimators.measured import measured
from opmon.testing.designs import design_of
from opmon.testing.populations import Population, classifier, regressor
from opmon.testing.samplers import drawn
from opmon.types import Labelled, Sample

DESIGNS = ["srs", "ssrs", "sups", "rhc", "adaptive", "gbs", "deepest", "two_stage", "ces"]


def answered(name: str, population: Population, budget: int = 60) -> Sample:
    sampler = plugins.make("sampler", name)
    return population.answer(drawn(sampler, population, budget, np.random.default_rng(2)))


@pytest.mark.parametrize("design", DESIGNS)
def test_accuracy_is_the_estimate_of_the_design_itself(design: str) -> None:
    sample = replace(answered(design, classifier(activations=4)), problem="classification")
    estimator = design_of(sample)
    truth = np.array(["yes"] * len(sample.draw))
    rows = Labelled(sample.answered, truth, np.where(sample.outcomes == 0, "yes", "no"))
    assert measured(estimator, sample, rows, plugins.make("measure", "accuracy")) == estimator.estimate(sample)


@pytest.mark.parametrize("design", DESIGNS)
def test_mean_squared_error_is_the_estimate_of_the_design_itself(design: str) -> None:
    sample = replace(answered(design, regressor(activations=4)), problem="regression")
    estimator = design_of(sample)
    rows = Labelled(sample.answered, np.zeros(len(sample.draw)), np.sqrt(sample.outcomes))
    found, own = (
        measured(estimator, sample, rows, plugins.make("measure", "mean_squared_error")),
        estimator.estimate(sample),
    )
    assert (found.value, found.low, found.high) == pytest.approx((own.value, own.low, own.high))
    assert (found.quantity, found.method, found.notes) == (own.quantity, own.method, own.notes)


def test_draws_without_an_answer_do_not_count_whatever_stands_there() -> None:
    sample = answered("ssrs", classifier())
    outcomes = np.where(np.arange(60) % 5 == 0, np.nan, sample.outcomes)
    some = Sample(sample.draw, outcomes, "classification")
    truth = np.where(np.isnan(outcomes), "", "yes")
    rows = Labelled(some.answered, truth, np.where(sample.outcomes == 0, "yes", "no"))
    found = measured(design_of(some), some, rows, plugins.make("measure", "recall", {"class": "yes"}))
    assert found.response == 0.8
    assert "12 of 60 draws have no answer" in " ".join(found.notes)


def test_rows_and_sample_are_of_the_same_answers() -> None:
    sample = answered("srs", classifier())
    rows = Labelled(np.arange(60) > 3, np.full(60, "a"), np.full(60, "a"))
    accuracy = plugins.make("measure", "accuracy")
    with pytest.raises(InputError, match="differ in which draws are answered: 56 and 60 of 60"):
        measured(design_of(sample), sample, rows, accuracy)
    with pytest.raises(InputError, match="one entry per draw: 60; got 4"):
        measured(design_of(sample), sample, rows.only(np.arange(60) < 4), accuracy)

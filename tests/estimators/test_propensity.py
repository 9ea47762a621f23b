"""Answers that are missing by suspicion: weighed where the variables foretell who answers, left alone where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.estimators import SimpleRandomEstimator, StratifiedEstimator, weighed, worst_case
from opmon.plugins import make
from opmon.testing.populations import Population, classifier
from opmon.types import Draw, Sample

POPULATION = classifier(3000, accuracy=0.9, seed=100)
SCENES = {"trusted seldom answer": (0.4, 0.95), "suspicious seldom answer": (0.95, 0.4), "even": (0.7, 0.7)}


def heard(sampler: str, scene: str, seed: int, budget: int = 200) -> tuple[Sample, dict[str, Any]]:
    """A round in which the trusted and the suspicious half of the inputs answer at different rates."""
    rng, confidence = np.random.default_rng(seed), POPULATION.frame.variables["confidence"]
    trusted, suspicious = SCENES[scene]
    silent = rng.random(POPULATION.frame.size) >= np.where(confidence > np.median(confidence), suspicious, trusted)
    chosen = make("sampler", sampler)
    sample = partly(POPULATION, chosen.draw(POPULATION.frame, budget, rng), silent)
    while len(sample.draw) < budget:
        sample = partly(POPULATION, chosen.next_batch(POPULATION.frame, budget, sample, rng), silent)
    return sample, {name: values[sample.draw.positions] for name, values in POPULATION.frame.variables.items()}


def partly(population: Population, draw: Draw, silent: np.ndarray) -> Sample:
    return Sample(draw, np.where(silent[draw.positions], np.nan, population.outcomes[draw.positions]), "classification")


def errors(sampler: str, scene: str, repetitions: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """The errors without and with a propensity."""
    estimator, found = make("estimator", sampler), []
    for seed in range(repetitions):
        sample, variables = heard(sampler, scene, seed)
        pair = (estimator.estimate(one).value for one in (sample, weighed(sample, variables)))
        found.append([value - POPULATION.truth for value in pair])
    return tuple(np.array(found).T)  # type: ignore[return-value]


def test_a_propensity_takes_the_bias_of_suspicion_away() -> None:
    plain, corrected = errors("srs", "trusted seldom answer")
    assert plain.mean() < -0.02
    assert abs(corrected.mean()) < 0.01
    assert np.sqrt((corrected**2).mean()) < 0.7 * np.sqrt((plain**2).mean())


@pytest.mark.parametrize("sampler", ["srs", "adaptive"])
@pytest.mark.parametrize("scene", ["suspicious seldom answer", "even"])
def test_a_propensity_does_not_lose_where_it_has_little_to_win(sampler: str, scene: str) -> None:
    plain, corrected = errors(sampler, scene, 30)
    assert np.sqrt((corrected**2).mean()) < 1.1 * np.sqrt((plain**2).mean())


def test_even_response_is_left_alone() -> None:
    samples = [heard("srs", "even", seed) for seed in range(40)]
    used = [weighed(sample, variables).propensity is not None for sample, variables in samples]
    assert sum(used) <= 6  # of 40, about one in 20 by chance


def test_labels_are_not_looked_at() -> None:
    sample, variables = heard("srs", "trusted seldom answer", 1)
    other = Sample(sample.draw, np.where(sample.answered, 1 - sample.outcomes, np.nan), "classification")
    found = weighed(sample, variables).propensity
    assert found is not None
    assert found == pytest.approx(weighed(other, variables).propensity)


@pytest.mark.parametrize("silent", [0, 5])
def test_nearly_full_response_needs_no_propensity(silent: int) -> None:
    sample, variables = heard("srs", "even", 0)
    outcomes = np.nan_to_num(sample.outcomes)
    outcomes[:silent] = np.nan
    full = Sample(sample.draw, outcomes, "classification")
    assert weighed(full, variables) is full


def test_variables_that_say_nothing_are_passed_over() -> None:
    sample, _ = heard("srs", "even", 0)
    count = len(sample.draw)
    assert weighed(sample, {"flat": np.ones(count), "unknown": np.full(count, np.nan)}) is sample


def test_a_variable_has_one_value_per_draw() -> None:
    sample, _ = heard("srs", "even", 0)
    with pytest.raises(InputError, match="'confidence' needs one value per draw: 200; got 3000"):
        weighed(sample, POPULATION.frame.variables)


@pytest.mark.parametrize("bad", [np.ones(2), np.array([0.5, 0.0, 0.5]), np.array([0.5, np.nan, 0.5])])
def test_a_sample_refuses_a_propensity_that_is_none(bad: np.ndarray) -> None:
    draw = Draw("srs", 9, np.arange(3), constants={"replacement": np.array(False)})
    with pytest.raises(InputError, match="one number above 0 per draw"):
        Sample(draw, np.zeros(3), propensity=bad)


def test_by_hand() -> None:
    draw = Draw("srs", 90, np.arange(4), constants={"replacement": np.array(True)})
    outcomes = np.array([1.0, 0.0, 0.0, np.nan])
    sample = Sample(draw, outcomes, "classification", propensity=np.array([0.5, 0.25, 0.25, 0.25]))
    assert SimpleRandomEstimator().estimate(sample).value == pytest.approx(1 - 2 / (2 + 4 + 4))


@pytest.mark.parametrize("design", ["srs", "sups", "rhc", "two_stage", "deepest", "ssrs", "css", "gbs", "adaptive"])
def test_a_level_propensity_changes_nothing(design: str) -> None:
    sample, _ = heard(design, "even", 3, budget=100)
    level = Sample(sample.draw, sample.outcomes, "classification", propensity=np.full(len(sample.draw), 0.4))
    estimator = make("estimator", design)
    assert estimator.coefficients(level) == pytest.approx(estimator.coefficients(sample))
    assert estimator.variance(level, sample.outcomes) == pytest.approx(estimator.variance(sample, sample.outcomes))


def test_a_note_says_whose_answers_are_missing() -> None:
    sample, variables = heard("srs", "trusted seldom answer", 1)
    notes = SimpleRandomEstimator().estimate(weighed(sample, variables)).notes
    assert any(note.startswith("response differs: ") and "answers weigh by the inverse" in note for note in notes)


def test_a_note_says_where_response_differs_between_strata() -> None:
    sample, _ = heard("ssrs", "trusted seldom answer", 1)
    told = [note for note in StratifiedEstimator().estimate(sample).notes if "differs between strata" in note]
    assert len(told) == 1
    even, _ = heard("ssrs", "even", 1)
    assert not any("differs" in note for note in StratifiedEstimator().estimate(even).notes)


def test_worst_cases_hold_the_estimate_of_all_answers() -> None:
    for design in ("srs", "sups", "ssrs", "adaptive"):
        sample, _ = heard(design, "trusted seldom answer", 2, budget=100)
        estimator = make("estimator", design)
        low, high = worst_case(estimator, sample)
        whole = estimator.estimate(POPULATION.answer(sample.draw)).value
        assert low - 1e-9 <= whole <= high + 1e-9, design


def test_losses_have_no_worst_case() -> None:
    draw = Draw("srs", 9, np.arange(3), constants={"replacement": np.array(False)})
    with pytest.raises(InputError, match="any size"):
        worst_case(SimpleRandomEstimator(), Sample(draw, np.array([1.0, 2.5, np.nan]), "regression"))

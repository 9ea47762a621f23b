"""Several rounds as one design: what is known of one round is known of all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from opmon import plugins
from opmon.errors import InputError
from opmon.estimators.joined import Joined, OneRound, joined_rows, joined_sample
from opmon.estimators.measured import measured
from opmon.estimators.ratios import slice_accuracy
from opmon.testing.designs import design_of
from opmon.testing.populations import Population, classifier
from opmon.testing.samplers import drawn
from opmon.types import Draw, Labelled, Sample

DESIGNS = ["srs", "ssrs", "sups", "adaptive", "gbs"]


def round_of(name: str, population: Population, seed: int, budget: int = 60) -> OneRound:
    sample = population.answer(drawn(plugins.make("sampler", name), population, budget, np.random.default_rng(seed)))
    truth = np.where(sample.draw.positions % 3 == 0, "a", "b")
    other = np.where(truth == "a", "b", "a")
    said = np.where(sample.outcomes == 0, truth, other)
    return OneRound(design_of(sample), sample, Labelled(sample.answered, truth, said, None, ("a", "b")))


def simple(outcomes: Sequence[float], size: int) -> OneRound:
    draw = Draw("srs", size, np.arange(len(outcomes)), constants={"replacement": np.array(True)})
    sample = Sample(draw, np.array(outcomes), "classification")
    return OneRound(design_of(sample), sample)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(
    ("kind", "given"), [("accuracy", {}), ("recall", {"class": "a"}), ("f1", {"average": "macro"})]
)
def test_one_round_joined_is_that_round(design: str, kind: str, given: dict[str, object]) -> None:
    one, measure = round_of(design, classifier(), 2), plugins.make("measure", kind, given)
    members = one.sample.draw.positions % 2 == 0
    assert one.rows is not None
    for part in (None, members):
        own = measured(one.estimator, one.sample, one.rows, measure, members=part)
        found = measured(Joined([one]), joined_sample([one]), joined_rows([one]), measure, members=part)
        assert (found.value, found.low, found.high) == pytest.approx((own.value, own.low, own.high))
        assert found.standard_error == pytest.approx(own.standard_error)


def test_rounds_drawn_alike_are_one_sample_of_all_inputs() -> None:
    rounds = [simple([0, 0, 1, 0, 0, 0, 0, 0, 1, 0], 100), simple([0, 1] + [0] * 8, 100)]
    both, whole = joined_sample(rounds), simple([0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1] + [0] * 8, 200)
    members = np.arange(20) % 4 != 3
    found = slice_accuracy(Joined(rounds), both, members, "some")
    own = slice_accuracy(whole.estimator, whole.sample, members, "some")
    assert found.value == pytest.approx(own.value)
    assert (found.low, found.high) == pytest.approx((own.low, own.high), abs=0.01)
    assert found.frame_size == 200


def test_rounds_weigh_by_their_inputs() -> None:
    rounds = [simple([1.0, 1.0, 0.0, 0.0], 300), simple([0.0, 0.0, 0.0, 0.0], 100)]
    found = slice_accuracy(Joined(rounds), joined_sample(rounds), np.ones(8, dtype=np.bool_), "all")
    assert found.value == pytest.approx(1 - 0.75 * 0.5)


def test_a_round_without_an_answer_in_it_is_left_out() -> None:
    rounds = [simple([0.0, 1.0, 0.0, 1.0], 100), simple([np.nan] * 4, 100)]
    found = Joined(rounds).estimate(joined_sample(rounds))
    assert found.value == pytest.approx(0.5)
    with pytest.raises(InputError, match="none of the rounds has an answer"):
        Joined(rounds[1:]).estimate(joined_sample(rounds[1:]))


def test_rounds_of_other_classes_are_not_joined() -> None:
    one = round_of("srs", classifier(), 2)
    assert one.rows is not None
    other = OneRound(one.estimator, one.sample, Labelled(one.rows.answered, one.rows.truth, one.rows.predicted))
    with pytest.raises(InputError, match="other classes"):
        joined_rows([one, other])


@pytest.mark.parametrize("design", ["srs", "sups", "adaptive"])
def test_intervals_of_slices_over_rounds_cover_and_are_narrower(design: str) -> None:
    population = classifier(size=3000, accuracy=0.8)
    inside = np.random.default_rng(0).random(3000) < 0.15
    wrong = population.outcomes[inside].mean()
    held, narrower = 0, []
    for seed in range(60):
        rounds = [round_of(design, population, 10 * seed + k, 100) for k in range(4)]
        sample = joined_sample(rounds)
        members = np.concatenate([inside[each.sample.draw.positions] for each in rounds])
        found = slice_accuracy(Joined(rounds), sample, members, "part")
        held += found.low <= 1 - wrong <= found.high
        first = rounds[0]
        own = slice_accuracy(first.estimator, first.sample, inside[first.sample.draw.positions], "part")
        narrower.append((found.high - found.low) / (own.high - own.low))
    assert held >= 51  # binomial, 60 at 0.95: below this less than once in 500
    assert np.median(narrower) < 0.65


@pytest.mark.parametrize("kind", ["brier", "log_loss", "auc"])
@pytest.mark.parametrize("design", ["srs", "adaptive"])
def test_a_round_without_scores_hides_no_measure_of_those_that_have_some(design: str, kind: str) -> None:
    population, rng = classifier(), np.random.default_rng(3)
    rounds = [round_of(design, population, seed) for seed in range(3)]
    for number in (0, 2):
        one = rounds[number]
        assert one.rows is not None
        first = np.where(one.rows.predicted == "a", 0.8, 0.3) + rng.uniform(-0.1, 0.1, len(one.rows))
        scores = np.column_stack((first, 1 - first)).astype(np.float32)
        rounds[number] = replace(one, rows=replace(one.rows, scores=scores))
    measure = plugins.make("measure", kind, {"class": "a"} if kind == "auc" else {})
    found = measured(Joined(rounds), joined_sample(rounds), joined_rows(rounds), measure)
    assert found.low < found.value < found.high

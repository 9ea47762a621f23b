from __future__ import annotations

import itertools

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.samplers.gbs import GradientBased, _steepest
from opmon.testing.populations import classifier
from opmon.types import Draw, Frame, Sample

POPULATION = classifier(size=2000)


def waves(budget: int, **arguments: int) -> list[Draw]:
    sampler, rng = GradientBased(**arguments), np.random.default_rng(1)
    draws = [sampler.draw(POPULATION.frame, budget, rng)]
    while len(draws[-1]) < budget:
        draws.append(sampler.next_batch(POPULATION.frame, budget, POPULATION.answer(draws[-1]), rng))
    return draws


def test_gbs_keeps_what_was_drawn_and_adds_a_wave() -> None:
    draws = waves(200)
    assert [len(draw) for draw in draws] == [40, 80, 120, 160, 200]
    for earlier, later in itertools.pairwise(draws):
        assert later.positions[: len(earlier)].tolist() == earlier.positions.tolist()
    assert len(draws[-1].unique_positions) == 200


def test_gbs_is_done_when_the_budget_is_spent() -> None:
    done = waves(100)[-1]
    again = GradientBased().next_batch(POPULATION.frame, 100, POPULATION.answer(done), np.random.default_rng(2))
    assert again is done


def test_gbs_every_wave_sees_every_stratum() -> None:
    draw = waves(200)[-1]
    for wave in range(5):
        assert set(draw.columns["stratum"][draw.columns["wave"] == wave]) == set(range(10))


def test_gbs_next_draw_goes_where_the_gradient_is_largest() -> None:
    # worth/n²: (4, 1, 1) → (1, 1, 1) after one more in the first, ties then to any
    assert _steepest(np.array([4.0, 1.0, 1.0]), np.array([9, 9, 9]), 4).tolist() == [2, 1, 1]
    assert _steepest(np.array([4.0, 1.0, 0.1]), np.array([2, 9, 9]), 8).sum() == 8
    assert _steepest(np.array([4.0, 1.0, 0.1]), np.array([2, 9, 9]), 8)[0] == 2


def test_gbs_draws_more_where_labels_disagree() -> None:
    """Stratum 0 always right, stratum 1 half and half: the second wave must lean to stratum 1."""
    sampler, rng = GradientBased(strata=2, waves=2), np.random.default_rng(1)
    chi = np.r_[np.full(500, 0.1), np.full(500, 0.9)]
    frame = POPULATION.frame.__class__({"confidence": chi})
    first = sampler.draw(frame, 80, rng)
    outcomes = np.where(first.columns["stratum"] == 1, np.arange(40) % 2, 0).astype(float)
    draw = sampler.next_batch(frame, 80, Sample(first, outcomes), rng)
    second = draw.columns["stratum"][draw.columns["wave"] == 1]
    assert np.bincount(second)[1] > 2 * np.bincount(second)[0]


def test_gbs_goes_on_while_labels_are_missing() -> None:
    sampler, rng = GradientBased(), np.random.default_rng(1)
    first = sampler.draw(POPULATION.frame, 100, rng)
    nothing = Sample(first, np.full(len(first), np.nan))
    assert len(sampler.next_batch(POPULATION.frame, 100, nothing, rng)) == 40


@pytest.mark.parametrize("given", [{"waves": 2.5}, {"waves": 0}, {"waves": True}, {"strata": 0}])
def test_gbs_wrong_parameter_is_an_error(given: dict[str, object]) -> None:
    with pytest.raises(InputError, match="whole number"):
        GradientBased(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [-3, 0, 1.5])
def test_gbs_goes_on_with_a_budget_only(budget: float) -> None:
    sampler, rng = GradientBased(), np.random.default_rng(1)
    sample = POPULATION.answer(sampler.draw(POPULATION.frame, 100, rng))
    with pytest.raises(InputError, match="whole number of draws"):
        sampler.next_batch(POPULATION.frame, budget, sample, rng)  # type: ignore[arg-type]


def test_gbs_going_on_from_another_design_or_frame_or_beyond_its_budget_is_an_error() -> None:
    sampler, rng = GradientBased(), np.random.default_rng(1)
    with pytest.raises(InputError, match="Begin with draw"):
        sampler.next_batch(POPULATION.frame, 100, Sample(Draw("ssrs", 2000, np.arange(5)), np.zeros(5)), rng)
    sample = POPULATION.answer(sampler.draw(POPULATION.frame, 100, rng))
    with pytest.raises(InputError, match="Begin with draw"):
        sampler.next_batch(Frame({"confidence": np.ones(30)}), 100, sample, rng)
    with pytest.raises(InputError, match="budget of 100; got 150"):
        sampler.next_batch(POPULATION.frame, 150, sample, rng)


def test_gbs_frame_labelled_whole_needs_no_more() -> None:
    sampler, rng = GradientBased(), np.random.default_rng(1)
    small = classifier(size=40)
    sample = small.answer(sampler.draw(small.frame, 100, rng))
    assert sampler.next_batch(small.frame, 100, sample, rng) is sample.draw

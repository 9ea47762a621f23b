from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.samplers.ces import SMOOTHING, CrossEntropy, section_indices
from opmon.types import Frame


def objective(bins: np.ndarray, chosen: np.ndarray, sections: int) -> float:
    """The mean over neurons of −Σ P_S log P_T, straight from its definition."""
    total = 0.0
    for neuron in range(bins.shape[1]):
        frame = np.bincount(bins[:, neuron], minlength=sections) / len(bins)
        sample = np.bincount(bins[chosen, neuron], minlength=sections) + SMOOTHING
        total -= float((frame * np.log(sample / sample.sum())).sum())
    return total / bins.shape[1]


def test_ces_sections_hold_both_ends_of_the_range() -> None:
    assert section_indices(np.array([[0.0], [0.5], [0.99], [1.0]]), 20)[:, 0].tolist() == [0, 10, 19, 19]


def test_ces_a_constant_neuron_is_one_section() -> None:
    assert section_indices(np.full((5, 2), 3.0), 20).tolist() == [[0, 0]] * 5


def test_ces_takes_the_group_that_the_definition_calls_best() -> None:
    """With one group per step the choice is random; with many, the result must be closer to the frame."""
    activations = np.random.default_rng(0).normal(size=(1000, 8))
    frame, bins = Frame({}, activations=activations), section_indices(activations, 20)
    scores = {}
    for groups in (1, 300):
        draws = [CrossEntropy(groups=groups).draw(frame, 100, np.random.default_rng(seed)) for seed in range(5)]
        scores[groups] = [objective(bins, draw.positions, 20) for draw in draws]
    assert max(scores[300]) < min(scores[1])


def test_ces_first_choice_is_the_minimum_over_its_groups() -> None:
    """Frame of 501, start of 30, one group of 5: of the 300 candidates none may be better than the one taken."""
    activations = np.random.default_rng(4).normal(size=(501, 5))
    bins = section_indices(activations, 20)
    draw = CrossEntropy().draw(Frame({}, activations=activations), 35, np.random.default_rng(9))
    start, taken = draw.positions[:30], objective(bins, draw.positions, 20)
    rng = np.random.default_rng(10)
    others = [objective(bins, np.r_[start, rng.choice(501, 5, replace=False)], 20) for _ in range(300)]
    assert np.mean(taken <= np.array(others)) > 0.97


def test_ces_draws_distinct_inputs_also_in_small_frames() -> None:
    frame = Frame({}, activations=np.random.default_rng(1).normal(size=(60, 4)))
    draw = CrossEntropy().draw(frame, 33, np.random.default_rng(1))
    assert len(set(draw.positions.tolist())) == 33


def test_ces_without_activations_says_what_to_do() -> None:
    with pytest.raises(InputError, match="activations"):
        CrossEntropy().draw(Frame({}, size=100), 10, np.random.default_rng(1))


def test_ces_refuses_activations_that_are_not_finite() -> None:
    bad = np.zeros((50, 2))
    bad[3, 1] = np.nan
    with pytest.raises(InputError, match="finite"):
        CrossEntropy().draw(Frame({}, activations=bad), 10, np.random.default_rng(1))

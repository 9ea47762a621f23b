from __future__ import annotations

import numpy as np
import pytest

from opmon.samplers._checks import CHUNK
from opmon.samplers._weights import WIDEST, Mixture, ProbabilityClasses, Weights
from opmon.samplers.sups import ProportionalToSize
from opmon.types import Frame


def test_weights_are_drawn_in_proportion() -> None:
    weights = Weights.of(np.array([1.0, 2.0, 3.0, 4.0]))
    counts = np.bincount(weights.draw(40_000, np.random.default_rng(1)), minlength=4)
    assert counts / 40_000 == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.01)


def test_weights_cross_chunks_without_losing_mass() -> None:
    """Float32 sums would lose the tail: the last of three chunks holds a third of the mass."""
    values = np.full(3 * CHUNK, 0.1, dtype=np.float32)
    positions = Weights.of(values).draw(9000, np.random.default_rng(2))
    assert np.bincount(positions // CHUNK) / 9000 == pytest.approx([1 / 3] * 3, abs=0.02)


def test_weights_without_replacement_are_distinct_and_start_in_proportion() -> None:
    weights = Weights.of(np.array([1.0, 2.0, 3.0, 4.0]))
    draws = np.array([weights.draw_without_replacement(3, np.random.default_rng(seed)) for seed in range(4000)])
    assert all(len(set(row)) == 3 for row in draws.tolist())
    assert np.bincount(draws[:, 0], minlength=4) / 4000 == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.03)
    after_last = draws[draws[:, 0] == 3][:, 1]
    assert np.bincount(after_last, minlength=3) / len(after_last) == pytest.approx([1 / 6, 1 / 3, 1 / 2], abs=0.05)


def test_weights_without_replacement_when_repeats_are_the_rule() -> None:
    """One weight holds nearly everything: the keys take over from the draws with replacement."""
    weights = Weights.of(np.r_[1e9, np.arange(1.0, 5.0)], floor=0.0)
    draws = np.array([weights.draw_without_replacement(3, np.random.default_rng(seed)) for seed in range(4000)])
    assert (draws[:, 0] == 0).mean() > 0.999
    assert np.bincount(draws[:, 1], minlength=5)[1:] / 4000 == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.03)


def test_mixture_adds_up_to_one_and_bounds_the_weights() -> None:
    mixture = Mixture(Weights.of(np.random.default_rng(1).random(CHUNK + 77) ** 8), 0.1)
    p = np.concatenate(list(mixture.by_chunk()))
    assert p.sum() == pytest.approx(1)
    assert (1 / (len(p) * p)).max() <= 10


def test_probability_classes_cover_the_frame_and_stay_narrow() -> None:
    mixture = Mixture(Weights.of(np.random.default_rng(1).random(20_000) ** 6), 0.0)
    p = np.concatenate(list(mixture.by_chunk()))
    classes = ProbabilityClasses.of(mixture, 10)
    label = classes.at(p)
    assert np.bincount(label).tolist() == classes.sizes.tolist()
    assert all(p[label == h].max() / p[label == h].min() <= WIDEST * 1.01 for h in np.unique(label))


def test_sups_all_defensive_is_uniform() -> None:
    frame = Frame({"confidence": np.array([0.9, 0.1, 0.1, 0.1, 0.1])})
    draw = ProportionalToSize(defensive=1.0).draw(frame, 4, np.random.default_rng(1))
    assert draw.columns["probability"] == pytest.approx([0.2] * 4)
    assert draw.constants["stratum_size"].tolist() == [5]


@pytest.mark.parametrize("defensive", [-0.1, 1.1, float("nan")])
def test_sups_refuses_a_share_outside_zero_to_one(defensive: float) -> None:
    with pytest.raises(ValueError, match="defensive"):
        ProportionalToSize(defensive=defensive)

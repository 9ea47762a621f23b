from __future__ import annotations

import numpy as np
import pytest

from opmon.samplers.rhc import RaoHartleyCochran
from opmon.samplers.two_stage import TwoStage
from opmon.types import Frame


def test_two_stage_probability_is_the_stratum_share_of_the_variable() -> None:
    frame = Frame({"confidence": np.r_[np.full(90, 0.1), np.full(10, 0.9)]})
    draw = TwoStage(strata=2, defensive=0.0).draw(frame, 20, np.random.default_rng(1))
    assert draw.constants["stratum_probability"] == pytest.approx([0.5, 0.5])
    assert draw.constants["stratum_size"].tolist() == [90, 10]


def test_two_stage_repeats_an_input_only_when_its_stratum_is_used_up() -> None:
    frame = Frame({"confidence": np.r_[np.full(90, 0.1), np.full(3, 0.9)]})
    draw = TwoStage(strata=2, defensive=0.0).draw(frame, 60, np.random.default_rng(1))
    counts = np.unique_counts(draw.positions[draw.columns["stratum"] == 1]).counts
    assert len(counts) == 3
    assert np.ptp(counts) <= 1


def test_rhc_draws_one_input_from_each_of_n_groups() -> None:
    chi = np.random.default_rng(1).random(103)
    draw = RaoHartleyCochran().draw(Frame({"confidence": chi}), 10, np.random.default_rng(2))
    assert len(draw.unique_positions) == 10
    assert draw.columns["group_probability"].sum() == pytest.approx(1)
    assert sorted(draw.columns["group_size"].tolist()) == [10] * 7 + [11] * 3
    assert (draw.columns["probability"] <= draw.columns["group_probability"]).all()


def test_rhc_draws_in_proportion_inside_its_groups() -> None:
    """Two groups of two out of (1, 1, 1, 5): input 3 is drawn from its group with probability 5/6."""
    frame = Frame({"confidence": np.array([0.1, 0.1, 0.1, 0.5])})
    sampler = RaoHartleyCochran(defensive=0.0)
    hits = np.mean([3 in sampler.draw(frame, 2, np.random.default_rng(s)).positions for s in range(4000)])
    assert hits == pytest.approx(5 / 6, abs=0.025)

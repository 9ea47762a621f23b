"""How many labels a ratio such as recall needs, from the draws of one round."""

from __future__ import annotations

import math

import pytest

from opmon.estimators.adaptive import AdaptiveEstimator
from opmon.estimators.measured import measured_tally
from opmon.estimators.ratio_planning import plan_ratio, ratio_widths
from opmon.estimators.tally import Tally
from opmon.measures.recall import Recall
from tests.estimators.test_ratio_tallies import drawn

SIZE, LABELS = 1_000_000, 120


def tally() -> Tally:
    found = measured_tally(AdaptiveEstimator(), *drawn(45, 15, 10, 50, 10_000, SIZE - 10_000), Recall("fraud"))
    assert found is not None
    return found


def test_simple_random_sampling_is_planned_by_how_rare_the_class_is() -> None:
    share, recall = 0.0075 + 0.99 / 6, 0.0075 / (0.0075 + 0.99 / 6)
    plain = 1.96**2 * recall * (1 - recall) / share / 0.02**2
    assert plan_ratio(tally(), 0.02, LABELS, SIZE).plain_budget == pytest.approx(plain, rel=0.01)


def test_the_budget_gives_the_width_and_less_does_not() -> None:
    plan = plan_ratio(tally(), 0.02, LABELS, SIZE)
    assert plan.half_width <= 0.02
    [(_, width, _)] = ratio_widths(tally(), [round(plan.budget * 0.97)], LABELS, SIZE)
    assert width > 0.02
    assert LABELS < plan.budget < plan.plain_budget


def test_half_the_width_takes_about_four_times_the_labels() -> None:
    wide, narrow = (plan_ratio(tally(), width, LABELS, SIZE).budget for width in (0.02, 0.01))
    assert narrow / wide == pytest.approx(4, rel=0.3)


def test_a_width_that_only_the_whole_frame_gives_takes_the_whole_frame() -> None:
    plan = plan_ratio(tally(), 1e-6, LABELS, SIZE)
    assert (plan.budget, plan.half_width) == (SIZE, 0.0)
    assert ratio_widths(tally(), [SIZE], LABELS, SIZE) == [(SIZE, 0.0, 0.0)]


def test_widths_fall_with_the_budget() -> None:
    widths = ratio_widths(tally(), [100, 400, 1600], LABELS, SIZE)
    for column in (1, 2):
        found = [each[column] for each in widths]
        assert found == sorted(found, reverse=True)
        assert not any(math.isnan(each) for each in found)

"""What a plan of labels goes by: the value alone of a share of inputs, else how much inputs differ."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.estimators.adaptive import AdaptiveEstimator
from opmon.estimators.measured import measured, measured_tally
from opmon.measures.recall import Recall
from opmon.quantities import ACCURACY, BIAS, MAE, MEAN_SCORE, PASS_RATE, R_SQUARED, RECALL, Quantity
from opmon.queries.planning import Known, budget_for, learned
from opmon.samplers.planning import NOTHING_GAINED, Shown
from opmon.store import revisions, rounds
from opmon.store.engine import open_store
from opmon.store.plans import RoundPlan
from opmon.types import Slice
from tests.estimators.test_ratio_tallies import drawn

SCORES = Known(MEAN_SCORE, "judged", variables=(), all_or_nothing=False)


def test_scores_need_the_labels_that_their_spread_asks_for() -> None:
    known = replace(SCORES, spread=0.16)
    found = budget_for(known, 0.03, 20_000, 0.8, 0.5)
    assert found.budget == pytest.approx((1.96 * 0.16 / 0.03) ** 2, abs=2)
    assert found.half_width <= 0.03
    worst = budget_for(SCORES, 0.03, 20_000, 0.8, 0.5)
    assert worst.budget > 5 * found.budget
    assert any("worst case" in note for note in worst.notes)
    assert found.notes == ()


def test_a_pass_rate_is_a_share_of_inputs() -> None:
    passing = Known(PASS_RATE, "judged", variables=())
    found = budget_for(passing, 0.03, 20_000, 0.8, 0.5)
    assert found.budget == budget_for(Known(variables=()), 0.03, 20_000, 0.8, 0.5).budget
    assert found.notes == ()


def test_what_labels_alone_tell_is_not_planned_before_them() -> None:
    with pytest.raises(InputError, match="MAE needs depend on how much inputs differ"):
        budget_for(Known(MAE, "regression", main="MAE", all_or_nothing=False), 0.1, 1000, None, 0.5)
    own = Quantity("gain", share=True)
    unknown = Known(own, main="gain", all_or_nothing=False, variables=())
    with pytest.raises(InputError, match="let the sampler adaptive draw one round"):
        budget_for(unknown, 0.05, 20_000, None, 0.5)
    assert budget_for(replace(unknown, spread=0.3), 0.05, 20_000, 0.7, 0.5).budget == pytest.approx(138, abs=2)


def test_of_what_is_counted_no_labels_are_planned() -> None:
    """Rather than to have a round labelled, whose truth comes by itself."""
    for counted in (
        Known(RECALL.of("fraud"), main="recall[fraud]", counted=True),
        Known(MAE, "regression", main="MAE", all_or_nothing=False, counted=True),
    ):
        with pytest.raises(InputError, match="is counted, and no label need be asked for"):
            budget_for(counted, 0.1, 1000, 0.5, 0.5)


@pytest.mark.parametrize(
    ("known", "width"),
    [
        (Known(ACCURACY, expected=0.9), 0.03),
        (Known(RECALL, main="recall"), 0.05),
        (Known(BIAS.measured_in("days"), "regression", expected=-2.4), 0.24),
        (Known(R_SQUARED, "regression", expected=-2.4), 0.24),
        (Known(MAE, "regression", expected=2.4), 0.24),
        (Known(MAE, "regression", expected=0.0), None),
        (Known(MAE, "regression"), None),
    ],
)
def test_a_width_that_nobody_names_is_the_usual_one(known: Known, width: float | None) -> None:
    assert known.usual_half_width == pytest.approx(width)


@pytest.mark.parametrize("quantity", [BIAS.measured_in("days"), R_SQUARED, MAE])
@pytest.mark.parametrize("expected", [0.0, -0.002, 0.01])
def test_what_is_near_nothing_asks_for_an_interval_half_as_wide(quantity: Quantity, expected: float) -> None:
    """And not for a tenth of next to nothing, which all inputs together would hardly give."""
    showed = Shown(0.5, 100, 10_000, 1.0, simple=True)
    known = Known(quantity, "regression", main=quantity.name, expected=expected, half_width=0.5, shown=showed)
    assert known.usual_half_width == pytest.approx(0.25)
    assert 300 < budget_for(known, 0.25, 10_000, expected, 0.5).budget <= 400
    assert replace(known, expected=-80.0).usual_half_width == pytest.approx(8)
    assert replace(known, half_width=math.inf, expected=-2.4).usual_half_width == pytest.approx(0.24)


def test_a_half_width_beyond_the_scale_is_refused() -> None:
    for known, words in ((Known(), "0.03, which is 3 points, for instance; got 5"), (SCORES, "0.03, for instance")):
        with pytest.raises(InputError, match=words):
            budget_for(replace(known, spread=0.16), 5, 20_000, 0.8, 0.5)


def test_draws_that_nobody_answers_are_planned_for() -> None:
    known = Known(variables=(), response=0.5)
    found, all_answer = (budget_for(each, 0.05, 20_000, 0.8, 0.5) for each in (known, replace(known, response=1.0)))
    assert found.budget == all_answer.budget == all_answer.asked
    assert found.asked == 2 * found.budget
    assert found.notes == (
        f"of the last draws 50 % were answered: for {found.budget} labels about {found.asked} have to be asked for",
    )
    few = budget_for(known, 0.03, 300, 0.8, 0.5)
    assert few.asked == 300
    assert few.notes[-1].endswith(f"for {few.budget} labels 300 inputs are too few")
    assert budget_for(replace(known, response=0.97), 0.05, 20_000, 0.8, 0.5) == all_answer


def known_of_recall(folder: Path, times: int) -> Known:
    """What a round tells whose labels found 45 frauds and missed 10: the answers to one draw of so many."""
    sample, rows = drawn(45 * times, 15 * times, 10 * times, 50 * times, 10_000, 990_000)
    said = np.arange(len(sample.draw)) % times == 0
    sample, rows = replace(sample, outcomes=np.where(said, sample.outcomes, np.nan)), replace(rows, answered=said)
    recall = Recall("fraud")
    estimate = measured(AdaptiveEstimator(), sample, rows, recall)
    tally, now = measured_tally(AdaptiveEstimator(), sample, rows, recall), datetime(2026, 3, 1, tzinfo=UTC)
    store = open_store(f"sqlite:///{folder / f'{times}.db'}")
    with store.write() as connection:
        version = {"model_name": "m", "model_version": "1", "only_version": None, "plan": RoundPlan()}
        rounds.add(connection, "m", [Slice("a", "0", "1", 10, now)], received=10, opened_at=now, **version)  # type: ignore[arg-type]
        key = rounds.get(connection, "m", 1).id
        revisions.add_estimate(connection, key, estimate, failures=25, labels_seen=120, made_at=now, tally=tally)
    with store.read() as connection:
        known = learned(connection, "m", Known(estimate.quantity, main=estimate.quantity.name))
    assert known.half_width == pytest.approx(estimate.half_width)
    return known


@pytest.mark.parametrize("half_width", [0.05, 0.02])
def test_of_a_ratio_too_nobody_is_asked_twice_for_what_nobody_answers(tmp_path: Path, half_width: float) -> None:
    half, all_answer = (known_of_recall(tmp_path, times) for times in (2, 1))
    assert half.labels == all_answer.labels == 120
    found, wanted = (budget_for(each, half_width, 1_000_000, None, 0.5) for each in (half, all_answer))
    assert found.budget == pytest.approx(wanted.budget, rel=0.01)
    assert wanted.asked == wanted.budget
    assert found.asked == 2 * found.budget


def test_another_aim_makes_intervals_wider() -> None:
    shown = Shown(0.04, 200, 10_000, gain=0.8, aim=0.5)
    for_failures = shown.aiming(1.0, "judged")
    assert for_failures.half_width == pytest.approx(0.04 * 1.7 / 1.1)
    assert for_failures.plan(0.04, 10_000).budget > shown.plan(0.04, 10_000).budget
    least = [each.plan(0.04, 10_000).plain_budget for each in (shown, for_failures)]
    assert least[0] == pytest.approx(least[1], abs=1), "what simple random sampling needs is the same"
    assert shown.aiming(0.5, "judged") is shown


def test_nothing_is_said_against_a_sampler_that_draws_at_random() -> None:
    shown = Shown(0.04, 200, 10_000, gain=1.0)
    assert NOTHING_GAINED in shown.plan(0.02, 10_000).notes
    assert replace(shown, simple=True).plan(0.02, 10_000).notes == ()
    assert math.isclose(shown.width(200, 10_000), 0.04)

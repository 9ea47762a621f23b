"""Rounds of which all is known differ by chance: that is no loss."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.estimators.changes import Change, Interval, change, worse_slices
from opmon.quantities import ACCURACY, RECALL, Quantity, mean_squared_error
from opmon.queries.drifting import _interval
from opmon.types import Estimate


def counted(value: float, inputs: int, quantity: Quantity = ACCURACY) -> Estimate:
    return Estimate(value, value, value, inputs, inputs, 1.0, "census", quantity=quantity)


def changes(right: float, now: float, inputs: int, before: int, times: int) -> list[Change]:
    rng = np.random.default_rng(7)
    found = []
    for _ in range(times):
        values = [*rng.binomial(inputs, right, before) / inputs, rng.binomial(inputs, now) / inputs]
        *earlier, last = [_interval(counted(float(value), inputs)) for value in values]
        made = change(last, earlier, "higher")
        assert made is not None
        found.append(made)
    return found


@pytest.mark.parametrize(("inputs", "right"), [(60, 0.9), (500, 0.9), (5000, 0.97)])
@pytest.mark.parametrize("before", [1, 10])
def test_what_was_counted_is_no_loss_by_chance(inputs: int, right: float, before: int) -> None:
    """One of forty at the most is called one, and where the model became worse by 4 errors it is."""
    none = changes(right, right, inputs, before, 2000)
    assert 0.005 < np.mean([each.is_loss for each in none]) < 0.04
    error = (right * (1 - right) / inputs * (1 + 1 / before)) ** 0.5
    worse = changes(right, right - 4.5 * error, inputs, before, 300)
    assert np.mean([each.is_loss for each in worse]) > 0.9
    assert np.mean([each.low <= 4.5 * error <= each.high for each in worse]) > 0.9


def test_it_adds_to_what_labels_leave_open() -> None:
    few = Estimate(0.8, 0.75, 0.85, 200, 400, 1.0, "srs")
    many = Estimate(0.8, 0.75, 0.85, 200, 10**7, 1.0, "srs")
    below = Estimate(-0.1, -0.1, 0.4, 40, 200, 1.0, "sups")
    assert 0.82 - 0.75 > 0.8 - _interval(few).low > 1.1 * (0.8 - 0.75)
    assert 0.8 - _interval(many).low == pytest.approx(0.05, rel=0.001)
    assert _interval(below).low <= -0.1 < 0.4 <= _interval(below).high


def test_recall_has_an_interval_too() -> None:
    recall = _interval(counted(0.9, 500, RECALL))
    assert recall.low < 0.9 < recall.high


ERRORS = mean_squared_error("days")


def errors(now: float, answered: float, before: int, rng: np.random.Generator) -> Change | None:
    """Rounds of 400 squared errors each, of which a part was answered and drawn without replacement."""
    estimates = []
    for mean in (*[1.0] * before, now):
        drawn = mean * rng.gamma(0.5, 2.0, int(400 * answered))
        radius = 1.96 * drawn.std(ddof=1) * np.sqrt((1 - answered) / len(drawn))
        value = float(drawn.mean())
        estimates.append(Estimate(value, value - radius, value + radius, len(drawn), 400, 1.0, "srs", quantity=ERRORS))
    *earlier, last = [_interval(each) for each in estimates]
    return change(last, earlier, "lower", chance=0.025)


@pytest.mark.parametrize("answered", [0.1, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("before", [3, 10])
def test_errors_of_a_regression_are_no_loss_by_chance_either(answered: float, before: int) -> None:
    """Errors are skewed, so that their intervals are short above: one of 25 at the most, where one of 40 is meant."""
    rng = np.random.default_rng(11)
    none = [errors(1.0, answered, before, rng) for _ in range(1500)]
    assert 0.005 < np.mean([each is not None and each.is_loss for each in none]) < 0.045
    lost = [errors(2.5, answered, before, rng) for _ in range(200)]
    least = 0.9 if answered > 0.1 and before > 3 else 0.4
    assert np.mean([each is not None and each.is_loss for each in lost]) > least


def test_one_round_before_does_not_tell_how_much_counted_errors_differ() -> None:
    found = change(_interval(counted(4.0, 500, ERRORS)), [_interval(counted(3.0, 500, ERRORS))], "lower", chance=0.025)
    assert found is not None
    assert (found.worse_by, found.is_loss, found.is_open) == (1.0, False, True)


def test_counted_slices_of_a_regression_are_worse_beyond_chance_alone() -> None:
    rng, wrong, found = np.random.default_rng(5), 0, 0
    for _ in range(400):
        pairs = {}
        for k in range(8):
            *before, now = [Interval(each, each, each) for each in rng.normal(3.0, 0.2, 11)]
            pairs[f"region {k}"] = (now, before)
        wrong += bool(worse_slices(pairs, "lower", 0.95))
        pairs["city"] = (Interval(5.0, 5.0, 5.0), pairs["region 0"][1])
        found += "city" in worse_slices(pairs, "lower", 0.95)
    assert wrong / 400 < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    assert found / 400 > 0.95

"""Rounds of which all is known differ by chance: that is no loss."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.estimators.changes import Change, change
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


def test_other_quantities_stay_as_they_were_counted() -> None:
    found = _interval(counted(4.0, 500, mean_squared_error("days")))
    assert (found.low, found.high) == (4.0, 4.0)
    recall = _interval(counted(0.9, 500, RECALL))
    assert recall.low < 0.9 < recall.high

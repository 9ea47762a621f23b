from __future__ import annotations

import numpy as np
import pytest

from opmon.estimators.changes import Interval, change, worse_slices


def normal(value: float, error: float, z: float = 1.96) -> Interval:
    return Interval(value, value - z * error, value + z * error)


def test_a_change_worked_by_hand() -> None:
    found = change(Interval(0.80, 0.75, 0.84), [Interval(0.90, 0.86, 0.93), Interval(0.92, 0.89, 0.94)], "higher")
    assert found is not None
    assert found.worse_by == pytest.approx(0.11)
    assert found.low == pytest.approx(0.11 - np.hypot(0.04, np.hypot(0.02, 0.015)))
    assert found.high == pytest.approx(0.11 + np.hypot(0.05, np.hypot(0.015, 0.01)))
    assert found.is_loss


def test_of_errors_more_is_worse_and_of_a_bias_what_is_farther_from_0() -> None:
    one = change(normal(3.0, 0.1), [normal(2.0, 0.1)], "lower")
    other = change(normal(-3.0, 0.1), [normal(2.0, 0.1)], "zero")
    assert one is not None
    assert other is not None
    assert (one.worse_by, one.low) == pytest.approx((other.worse_by, other.low))
    assert one.is_loss
    assert change(normal(1, 0.1), [], "lower") is None


def test_without_a_bound_nothing_is_a_loss() -> None:
    found = change(Interval(0.2, 0.0, float("inf")), [normal(0.9, 0.01)], "higher")
    assert found is not None
    assert not found.is_loss


def test_intervals_of_changes_hold_the_change() -> None:
    rng, inside = np.random.default_rng(3), 0
    for _ in range(2000):
        now, before = rng.normal(0.8, 0.02), rng.normal(0.9, 0.01, 4)
        found = change(normal(now, 0.02), [normal(each, 0.01) for each in before], "higher")
        inside += found is not None and found.low <= 0.1 <= found.high
    assert abs(inside / 2000 - 0.95) < 3 * (0.95 * 0.05 / 2000) ** 0.5


def test_of_slices_none_is_called_worse_without_cause_more_often_than_once_in_twenty() -> None:
    rng, wrong = np.random.default_rng(4), 0
    for _ in range(1000):
        pairs = {
            str(k): (normal(rng.normal(0.9, 0.03), 0.03), [normal(rng.normal(0.9, 0.03), 0.03) for _ in range(3)])
            for k in range(12)
        }
        wrong += bool(worse_slices(pairs, "higher", 0.95))
    assert wrong / 1000 < 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5


def test_a_slice_that_sank_is_found_beside_others_and_its_bound_knows_the_search() -> None:
    pairs = {f"country {k}": (normal(0.9, 0.03), [normal(0.9, 0.03)]) for k in range(12)}
    pairs["country DE"] = (normal(0.5, 0.03), [normal(0.9, 0.03)])
    found = worse_slices(pairs, "higher", 0.95)
    alone = change(*pairs["country DE"], "higher")
    assert list(found) == ["country DE"]
    assert alone is not None
    assert 0 < found["country DE"].low < alone.low

"""Which slices are called worse, by the way in which the quantity is better."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.estimators.slices import Estimating, Members, behind
from opmon.quantities import BIAS, MAE, R_SQUARED, Quantity
from opmon.types import Estimate

INSIDE = np.arange(200) < 100


def estimating(inside: float, outside: float, half: float, quantity: Quantity) -> Estimating:
    def of(members: Members, level: float) -> Estimate:
        value = inside if members[0] else outside
        return Estimate(value, value - half, value + half, 100, 1000, 1.0, "srs", level, quantity)

    return of


@pytest.mark.parametrize(
    ("quantity", "inside", "outside", "by"),
    [
        (BIAS, -5.0, 1.0, 4.0),  # far below 0
        (BIAS, 5.0, -1.0, 4.0),
        (BIAS, 1.0, -5.0, None),  # higher, and nearer to 0
        (BIAS, 3.0, -3.0, None),  # as far on the other side
        (MAE, 5.0, 1.0, 4.0),
        (MAE, 1.0, 5.0, None),
        (R_SQUARED, 1.0, 5.0, 4.0),
        (R_SQUARED, 5.0, 1.0, None),
        (Quantity("number", better="neither"), 5.0, 1.0, None),
    ],
)
def test_worse_is_what_the_quantity_says(quantity: Quantity, inside: float, outside: float, by: float | None) -> None:
    of = estimating(inside, outside, 0.5, quantity)
    found = behind(of, {"own": INSIDE}, np.ones(200, bool), quantity)
    if by is None:
        assert found == {}
    else:
        assert found["own"].by == pytest.approx(by)
        assert found["own"].at_least == pytest.approx(by - np.sqrt(0.5))


def test_distances_from_0_are_compared_at_both_sides() -> None:
    levels = []

    def of(members: Members, level: float) -> Estimate:
        levels.append(level)
        return Estimate(0.0, -1.0, 1.0, 100, 1000, 1.0, "srs", level, BIAS)

    assert behind(of, {"own": INSIDE}, np.ones(200, bool), BIAS, error=0.05) == {}
    assert set(levels) == {0.95}

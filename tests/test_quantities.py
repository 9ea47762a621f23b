"""How values and intervals are written."""

from __future__ import annotations

import math

import pytest

from opmon.quantities import MAE, MEAN_SQUARED_ERROR, RECALL, Quantity

EUR = Quantity("cost", "EUR", better="lower")


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((0.002, 0.00004, 0.004), "0.0020 [0.0000, 0.0040]"),
        ((0.0021, 0.00009, 0.0051), "0.0021 [0.0001, 0.0051]"),
        ((2e-6, 1e-6, 4e-6), "0.0000020 [0.0000010, 0.0000040]"),
        ((2e-8, 1e-8, 4e-8), "2·10⁻⁸ [10⁻⁸, 4·10⁻⁸]"),
        ((3.2, 2.8, 3.7), "3.2 [2.8, 3.7]"),
    ],
)
def test_the_numbers_of_an_interval_are_written_alike(bounds: tuple[float, float, float], text: str) -> None:
    assert MEAN_SQUARED_ERROR.interval(*bounds) == text


def test_large_bounds_on_both_sides_of_nothing_are_written_alike() -> None:
    assert EUR.interval(-2.573e7, -57_494_486.0, 6_034_486.0) == "-25,730,000 EUR [-57,494,486, 6,034,486]"
    huge = EUR.interval(-2.573e16, -5.7e16, 6_034_486.0)
    assert huge == "-2.573·10¹⁶ EUR [-5.7·10¹⁶, 6.034·10⁶]"
    assert MAE.interval(3.0, 2.0, math.inf) == "3 [2, ∞]"


@pytest.mark.parametrize("letter", ["a", "é", "漢", "𠀀"])
def test_long_names_have_keys_that_fit_and_differ(letter: str) -> None:
    keys = [RECALL.of(letter * length).key for length in (30, 130, 200, 201)]
    assert len(set(keys)) == 4
    assert keys[0] == f"recall_{letter * 30}"
    assert all(len(f"{key}.png".encode()) <= 255 and len(f"opmon.{'m' * 100}.{key}.interval") <= 250 for key in keys)

"""Tables put together whose columns differ in their types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from opmon.tables import joined

CASES: dict[str, tuple[list[pa.Array], pa.DataType, list[Any]]] = {
    "numbers": ([pa.array([1, None]), pa.array([0.5])], pa.float64(), [1.0, None, 0.5]),
    "large numbers": ([pa.array([2**53 + 1]), pa.nulls(1), pa.array([0.5])], pa.float64(), [2.0**53, None, 0.5]),
    "large numbers beside short fractions": (
        [pa.array([-(2**60) - 1]), pa.array([0.5], pa.float32()), pa.array([2.5])],
        pa.float64(),
        [-(2.0**60), 0.5, 2.5],
    ),
    "whole numbers of two kinds": (
        [pa.array([2**63], pa.uint64()), pa.array([-1])],
        pa.string(),
        ["9223372036854775808", "-1"],
    ),
    "a number and a text": ([pa.array([2139]), pa.array(["SW1A"])], pa.string(), ["2139", "SW1A"]),
    "a number, a fraction and a text": (
        [pa.array([2**53 + 1]), pa.array([0.5]), pa.array(["x"])],
        pa.string(),
        ["9007199254740993", "0.5", "x"],
    ),
    "a decimal and a yes": ([pa.array([Decimal("0.5")]), pa.array([True])], pa.string(), ["0.5", "true"]),
}


@pytest.mark.parametrize("case", CASES)
def test_columns_of_several_types_become_one_that_fits_all(case: str) -> None:
    arrays, kind, values = CASES[case]
    found = joined([pa.table({"beside": [k] * len(array), "x": array}) for k, array in enumerate(arrays)])
    assert (found["x"].type, found["x"].to_pylist()) == (kind, values)
    assert found["beside"].type == pa.int64()

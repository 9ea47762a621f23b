"""Values of columns as the text that tells slices apart."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest

from opmon.jobs.slices import texts_of
from opmon.types.slicing import Cut

AGES = (0.0, 30.0, 60.0)


@pytest.mark.parametrize(
    ("values", "edges", "texts"),
    [
        (["DE", " DE ", "", "  ", None], None, ["DE", "DE", None, None, None]),
        (["Österreich", "日本", "a\nb", "x" * 100], None, ["Österreich", "日本", "a b", "x" * 80]),
        ([1, 2, None], None, ["1", "2", None]),
        ([1.0, 2.5, float("nan"), float("inf")], None, ["1", "2.5", None, None]),
        ([True, False, None], None, ["true", "false", None]),
        ([dt.date(2026, 1, 31)], None, ["2026-01-31"]),
        ([decimal.Decimal("1.50"), decimal.Decimal("2.00")], None, ["1.5", "2"]),
        ([b"ok", b"\xff"], None, [None, None]),
        ([[1], [2]], None, [None, None]),
        ([29.99, 30, 60, -1, None], AGES, ["0-30", "30-60", "60 and more", "below 0", None]),
        (["34", "x", None, " 60 "], AGES, ["30-60", None, None, "60 and more"]),
        ([dt.date(2026, 1, 31)], AGES, [None]),
        ([True, False], (0.5,), ["0.5 and more", "below 0.5"]),
    ],
)
def test_texts(values: list[Any], edges: tuple[float, ...] | None, texts: list[str | None]) -> None:
    column = pa.array(values)
    cut = Cut("x", edges=edges)
    assert texts_of(pa.record_batch({"x": column}), cut).to_pylist() == texts
    if not pa.types.is_nested(column.type):
        assert texts_of(pa.record_batch({"x": column.dictionary_encode()}), cut).to_pylist() == texts


def test_a_column_that_is_not_there_has_nothing() -> None:
    assert texts_of(pa.record_batch({"y": [1, 2]}), Cut("x")).to_pylist() == [None, None]

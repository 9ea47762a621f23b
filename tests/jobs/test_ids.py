"""Ids as text: the same ones in whatever type a log and its truths hold them."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from opmon.errors import SourceError
from opmon.jobs.ids import ids_of, texts_of_ids

WHOLE = ["5", "16777215", "0"]


@pytest.mark.parametrize(
    ("kind", "whole"),
    [
        (pa.float16(), ["5", "2047", "0"]),
        (pa.float32(), WHOLE),
        (pa.float64(), [*WHOLE, "20000000000001", "-20260301000001", str(2**53 - 1)]),
        (pa.decimal128(38, 10), [*WHOLE, "1234567890123456789012345678"]),
        (pa.decimal128(20, 0), [*WHOLE, "12345678901234567890"]),
        (pa.decimal128(5, -2), ["500", "0"]),
        (pa.decimal256(60, 30), [*WHOLE, "12345678901234567890"]),
    ],
)
def test_whole_numbers_are_written_as_such_in_whatever_type_they_come(kind: pa.DataType, whole: list[str]) -> None:
    numbers = [Decimal(each) if pa.types.is_decimal(kind) else float(each) for each in whole]
    given = pa.array(numbers, pa.float64()).cast(kind) if pa.types.is_float16(kind) else pa.array(numbers, kind)
    assert ids_of(given, "id").to_pylist() == whole
    assert ids_of(given.dictionary_encode() if not pa.types.is_float16(kind) else given, "id").to_pylist() == whole


def test_fractions_are_written_as_they_were() -> None:
    for given in (pa.array([0.5, 1700000000.25]), pa.array([Decimal("5.25"), Decimal("0.10")])):
        assert ids_of(given, "id").equals(given.cast(pa.string()))
    assert ids_of(pa.array([0.1], pa.float32()), "id").to_pylist() == ["0.1"]


@pytest.mark.parametrize(("kind", "first"), [(pa.float64(), 2**53), (pa.float32(), 2**24)])
def test_a_number_of_which_digits_may_be_lost_is_no_id(kind: pa.DataType, first: int) -> None:
    given = pa.array([1.0, float(first), float("nan"), None], kind)
    with pytest.raises(SourceError, match=rf"holds {first}, .*does not keep every digit.*text or whole numbers"):
        ids_of(given, "id")
    assert texts_of_ids(given).to_pylist() == ["1", None, None, None]
    with pytest.raises(SourceError, match=r"1 of 2 inputs have no 'id'"):
        ids_of(pa.array([1.0, float("nan")], kind), "id")

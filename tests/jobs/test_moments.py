"""Times as logs hold them."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from opmon.errors import SourceError
from opmon.jobs.moments import moments_of, span_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS = int(NOON.timestamp())


@pytest.mark.parametrize("factor", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_numbers_since_1970_are_read_in_the_unit_that_their_size_tells(factor: int, kind: pa.DataType) -> None:
    text = pa.array([str(SECONDS * factor), None])
    values = text.dictionary_encode() if pa.types.is_dictionary(kind) else text.cast(kind)
    assert moments_of(values, "at").to_pylist() == [NOON, None]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
@pytest.mark.parametrize(("first", "last"), [("20260131", "20260401"), ("202601310000", "202604010000"),
                                             ("20260131000000", "20260401000000")])  # fmt: skip
def test_dates_that_are_written_as_numbers_are_dates(first: str, last: str, kind: pa.DataType) -> None:
    """As a number behind 1970 they would be of August 1970, of 1976, or of the year 2612."""
    numbers = pa.array([first, None, last]) if kind == pa.string() else pa.array([int(first), None, int(last)], kind)
    assert [found and found.date().isoformat() for found in moments_of(numbers, "at").to_pylist()] == [
        "2026-01-31", None, "2026-04-01"
    ]  # fmt: skip


def test_text_and_numbers_may_stand_in_one_column_and_what_is_no_time_is_none() -> None:
    values = pa.array([str(SECONDS), "2026-03-01T13:00:00+01:00", "soon", "20260301", None])
    assert moments_of(values, "at").to_pylist() == [NOON, NOON, None, NOON.replace(hour=0), None]
    odd = pa.array([np.nan, np.inf, 1e300, 2.0**52, -5.0, *[float(SECONDS)] * 5])
    assert moments_of(odd, "at").to_pylist() == [None] * 5 + [NOON] * 5


def test_lists_are_no_times() -> None:
    with pytest.raises(SourceError, match="milli-, micro- or nanoseconds since 1970"):
        span_of(pa.array([[1]]), "at")

"""The times at which a round's inputs were answered, from whatever production logs as a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opmon.errors import SourceError

_UTC = pa.timestamp("us", tz="UTC")
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
_UNITS = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (1e20, 1e-3))
"""Below which size numbers since 1970 are in which unit, as a factor to microseconds."""
_WRITTEN = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Dates that are written as one number, by its length: behind 1970 they would be of 1970, 1976 and after 2500."""
_DIGITS = r"^\s*\d{9,19}(\.\d+)?\s*$"
"""A number behind 1970 that came as text."""


@dataclass(frozen=True)
class Span:
    """The first and the last moment of some inputs; those of parts can be put together."""

    first: datetime | None = None
    last: datetime | None = None
    odd: str | None = None
    """One of the values, where none of them is a time."""
    late: int = 0
    """The number of them that came before the moment from which on they count as in time."""

    @classmethod
    def of(cls, values: pa.Array, name: str | None, in_time: datetime | None = None) -> Span:
        """The span of a column; an error where it cannot hold times at all. What is before ``in_time`` is late."""
        if values.null_count == len(values):
            return cls()
        possible = moments_of(values, name).drop_null()
        if len(possible):
            bounds = pc.min_max(possible)
            late = 0 if in_time is None else pc.sum(pc.less(possible, pa.scalar(in_time, _UTC))).as_py()
            return cls(bounds["min"].as_py(), bounds["max"].as_py(), late=late)
        given = next((value for value in values.to_pylist() if value not in (None, "") and value == value), None)  # NaN
        return cls(odd=None if given is None else str(given))

    def __or__(self, other: Span) -> Span:
        firsts = [span.first for span in (self, other) if span.first is not None]
        lasts = [span.last for span in (self, other) if span.last is not None]
        odd, late = self.odd or other.odd, self.late + other.late
        return Span(min(firsts, default=None), max(lasts, default=None), odd, late)

    def bounds(self, name: str | None) -> tuple[datetime, datetime] | None:
        """The first and the last moment; None where there is none, and an error where there are only other values."""
        if self.first is not None and self.last is not None:
            return self.first, self.last
        if self.odd is not None:
            raise _no_times(name, f"for example {self.odd}")
        return None


NO_SPAN = Span()
"""The span of inputs without times."""


def span_of(values: pa.Array, name: str | None) -> tuple[datetime, datetime] | None:
    """The first and the last moment; None where there is none. What is no time in single rows is passed over.

    >>> first, last = span_of(pa.array(["2026-03-01T12:00:00Z", "?", "2026-03-01T13:00:00+02:00"]), "at")
    >>> first.isoformat(), last.isoformat()
    ('2026-03-01T11:00:00+00:00', '2026-03-01T12:00:00+00:00')
    >>> first, last = span_of(pa.array([1772366400000, 1772366400123, None]), "at")  # milliseconds, by their size
    >>> first.isoformat(), last.isoformat()
    ('2026-03-01T12:00:00+00:00', '2026-03-01T12:00:00.123000+00:00')
    """
    return Span.of(values, name).bounds(name)


def moments_of(values: pa.Array, name: str | None) -> pa.Array:
    """The moment of each row, null where it tells none; an error where the column cannot hold times at all."""
    try:
        moments = _as_moments(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, TypeError) as exc:
        raise _no_times(name, str(exc)) from exc
    possible = pc.and_(
        pc.greater_equal(moments, pa.scalar(_EARLIEST, _UTC)), pc.less(moments, pa.scalar(_LATEST, _UTC))
    )
    return pc.if_else(possible, moments, pa.scalar(None, _UTC))


def _as_moments(values: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        times = pc.cast(values, pa.timestamp("us", tz=values.type.tz), safe=False)  # nanoseconds are cut off
        return pc.cast(times, _UTC) if values.type.tz else pc.assume_timezone(times, "UTC")
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return _counted(pc.cast(values, pa.float64(), safe=False))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    digits = pc.match_substring_regex(values, _DIGITS) if text else pa.array([], pa.bool_())
    if pc.any(digits).as_py():
        numbers = pc.cast(pc.if_else(digits, values, None), pa.float64())
        return pc.coalesce(_counted(numbers), _as_moments(pc.if_else(digits, None, values)))
    return _read(values, "ISO8601")


def _read(texts: pa.Array, written: str) -> pa.Array:
    import pandas as pd

    times = pd.to_datetime(texts.to_pandas(), utc=True, format=written, errors="coerce")
    return pa.array(times.dt.as_unit("us"), type=_UTC)


def _format_of(number: float) -> str | None:
    """How a date is written as a number; None for a number that is no date.

    >>> _format_of(20260301), _format_of(20260301120000), _format_of(1772366400), _format_of(20269901)
    ('%Y%m%d', '%Y%m%d%H%M%S', None, None)
    """
    text = str(int(number))
    written = _WRITTEN.get(len(text))
    if written is None or not "1970" <= text[:4] <= "2100":
        return None
    return written if "01" <= text[4:6] <= "12" and "01" <= text[6:8] <= "31" else None


def _counted(passed: pa.Array) -> pa.Array:
    """The moments that lie so far behind 1970: in seconds, milliseconds, micro- or nanoseconds, by the size of most;
    or that are dates written as numbers, such as 20260301, where most are.

    Seconds below 10¹¹ last until the year 5138; as milliseconds these are of 1973 and before. What then lies beyond all
    times is none, such as a number that got lost among them.
    """
    numbers = passed.to_numpy(zero_copy_only=False)
    told = np.abs(numbers[np.isfinite(numbers)])
    usual = float(np.sort(told)[len(told) // 2]) if len(told) else 0.0
    written = _format_of(usual)
    if written is not None:
        return _read(pc.cast(pc.cast(passed, pa.int64(), safe=False), pa.string()), written)
    factor = next((factor for limit, factor in _UNITS if usual < limit), _UNITS[0][1])
    micros = pc.multiply(passed, factor)
    micros = pc.if_else(pc.less(pc.abs(micros), 9e18), micros, None)  # NaN too; beyond it overflows
    return pc.cast(pc.cast(micros, pa.int64(), safe=False), _UTC)


def _no_times(name: str | None, why: str) -> SourceError:
    return SourceError(
        f"column {name!r} does not hold times ({why}); allowed are timestamps, ISO 8601 text, seconds, milli-, micro- "
        "or nanoseconds since 1970, and dates as numbers, such as 20260301 and 20260301120000. Correct 'columns', or "
        "leave timestamp out of it."
    )

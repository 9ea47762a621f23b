from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.errors import InputError
from opmon.triggers.silence import Silence, silent_until

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return MONDAY + timedelta(days=day, hours=hour, minutes=minute)


@pytest.mark.parametrize(
    ("window", "moment", "ends"),
    [
        ("22:00-07:00", at(0, 23), at(1, 7)),
        ("22:00-07:00", at(0, 6, 59), at(0, 7)),
        ("22:00-07:00", at(0, 7), None),
        ("22:00-07:00", at(0, 12), None),
        ("mon-fri 09:00-17:00", at(4, 16), at(4, 17)),
        ("mon-fri 09:00-17:00", at(5, 16), None),
        ("sat,sun", at(5, 0), at(6, 0)),
        ("fri 22:00-07:00", at(5, 3), at(5, 7)),
        ("sun-mon 22:00-07:00", at(1, 3), at(1, 7)),
        ("22:00-07:00 Europe/Berlin", at(0, 21, 30), at(1, 6)),
        ("00:00-24:00", at(3, 5), at(4, 0)),
    ],
)
def test_windows(window: str, moment: datetime, ends: datetime | None) -> None:
    assert Silence.parse(window).ends(moment) == ends


def test_windows_that_touch_are_one() -> None:
    windows = [Silence.parse("sat,sun"), Silence.parse("22:00-07:00")]
    assert silent_until(windows, at(4, 23)) == at(7, 7)
    assert silent_until(windows, at(2, 12)) == at(2, 12)


def test_silence_without_end_lasts_a_week() -> None:
    assert silent_until([Silence.parse("mon-sun")], at(0, 1)) == at(7, 1)


@pytest.mark.parametrize("text", ["", "22-7", "25:00-26:00", "fre 1:00-2:00", "1:00-2:00 Mars/Olympus", "1:70-2:00", 5])
def test_windows_that_cannot_be(text: str) -> None:
    with pytest.raises(InputError, match="silence"):
        Silence.parse(text)


@given(st.integers(0, 365 * 24 * 60), st.integers(0, 23), st.integers(1, 23))
def test_the_moment_found_is_never_silent(minutes: int, start: int, hours: int) -> None:
    moment = MONDAY + timedelta(minutes=minutes)
    window = Silence.parse(f"{start}:00-{(start + hours) % 24}:00 Europe/Berlin")
    found = silent_until([window], moment)
    assert window.ends(found) is None
    assert found >= moment

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from opmon.errors import InputError
from opmon.sources._since import moment_of, settling, since_text

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, None),
        ("now", NOON),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        (date(2026, 3, 1), datetime(2026, 3, 1, tzinfo=UTC)),
        (datetime(2026, 3, 1, 8, tzinfo=UTC), datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01T12:00:00+01:00", datetime(2026, 3, 1, 11, tzinfo=UTC)),
    ],
)
def test_since_is_a_date_a_time_or_now(said: object, meant: datetime | None) -> None:
    assert moment_of(since_text(said), NOON) == meant  # type: ignore[arg-type]


def test_since_that_is_no_date_is_refused_in_words() -> None:
    with pytest.raises(InputError, match=r"since must be a date such as 2026-03-01.*got 'last week'"):
        since_text("last week")


def test_settle_may_be_nothing_and_has_a_unit() -> None:
    assert (settling("0"), settling("0s"), settling("2m")) == (timedelta(), timedelta(), timedelta(minutes=2))
    with pytest.raises(InputError, match=r"settle must be a number with its unit.*or 0s; got '60'"):
        settling("60")

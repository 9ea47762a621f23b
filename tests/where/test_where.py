"""Which rows a condition takes, and what it says of text that is none."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from opmon.errors import InputError, SourceError
from opmon.where import parse

ROWS = pa.RecordBatch.from_pydict(
    {
        "country": ["DE", "AT", None, "DE"],
        "age": pa.array([17, 18, 40, None], pa.int64()),
        "score": [0.5, float("nan"), 0.9, 0.1],
        "shadow": [True, False, None, False],
        "at": pa.array([datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3, 4)], pa.timestamp("us", "UTC")),
        "local": pa.array([f"2026-03-0{day}" for day in (1, 2, 3, 4)]).cast(pa.timestamp("ms")),
        "day": pa.array([date(2026, 3, day) for day in (1, 2, 3, 4)]),
        "price": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("9.99")], pa.decimal128(6, 2)),
        "zip code": ["04103", "10115", "1010", None],
        "version": pa.array(["web-1", "shadow", "web-2", "web-1"]).dictionary_encode(),
        "nothing": pa.nulls(4),
        "features": pa.array([[1], [2], [3], [4]]),
        "other": ["DE", "DE", None, "AT"],
    }
)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("country == 'DE'", [0, 3]),
        ("country = 'DE' and version != 'shadow'", [0, 3]),
        ("'DE' == country", [0, 3]),
        ('country <> "DE"', [1]),  # null is unknown, as in SQL
        ("country != 'DE' or country is null", [1, 2]),
        ("not (country == 'DE')", [1]),
        ("NOT country IN ('DE', 'FR') OR age > 30", [1, 2]),
        ("country not in ('AT')", [0, 3]),
        ("country is not null and age is not null", [0, 1]),
        ("age >= 18", [1, 2]),
        ("18 <= age", [1, 2]),
        ("age in (17, 40)", [0, 2]),
        ("age > 17.5", [1, 2]),
        ("score > -1", [0, 2, 3]),  # NaN is no value
        ("score is null", [1]),
        ("score in (0.5, 0.1)", [0, 3]),
        ("shadow == false", [1, 3]),
        ("shadow != true", [1, 3]),
        ("at >= '2026-03-03'", [2, 3]),
        ("at < '2026-03-02T01:00:00+01:00'", [0]),
        ("local >= '2026-03-03T00:00:00Z'", [2, 3]),
        ("day > '2026-03-02'", [2, 3]),
        ("day in ('2026-03-01', '2026-03-04')", [0, 3]),
        ("price < 2", [0]),
        ("`zip code` == '04103'", [0]),
        ("`zip code` in (10115, 1010)", [1, 2]),  # a number means the text that says it
        ("version like 'web-%'", [0, 2, 3]),
        ("version not like 'web-_'", [1]),
        ("nothing is null", [0, 1, 2, 3]),
        ("nothing == 'x'", []),
        ("country == other", [0]),
        ("country == 'it''s'", []),
    ],
)
def test_takes_the_rows_that_fit(text: str, taken: list[int]) -> None:
    where = parse(text)
    assert where.mask(ROWS).nonzero()[0].tolist() == taken
    assert pickle.loads(pickle.dumps(where)) == where
    assert str(where) == text


ODD = pa.RecordBatch.from_pydict(
    {
        "words": ["9", " 18", "1e2", "old", None],
        "large": pa.array(["9", "18", "100", "old", None], pa.large_string()),
        "codes": ["123456789012345678", "123456789012345679", "-5", "", None],
        "half": pa.array([9.0, 18.0, 100.0, float("nan"), None], pa.float32()).cast(pa.float16()),
        "unsigned": pa.array([9, 18, 2**64 - 1, 0, None], pa.uint64()),
        "tiny": pa.array([9, 18, 100, -5, None], pa.int8()),
        "time": pa.array([0, 1, 2, 3, None], pa.time64("us")),
        "lasted": pa.array([0, 1, 2, 3, None], pa.duration("s")),
    }
)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("words >= 18", [1, 2]),  # never by the order of their letters
        ("large >= 18", [1, 2]),
        ("18 <= words", [1, 2]),
        ("words != 18", [0, 2]),
        ("words in (9, 100.0)", [0, 2]),
        ("words in (9, 'old')", [0, 3]),
        ("words == 'old'", [3]),
        ("codes == 123456789012345679", [1]),
        ("codes < 0", [2]),
        ("half >= 18", [1, 2]),
        ("half in (9, 18)", [0, 1]),
        ("half is null", [3, 4]),
        ("unsigned >= 18", [1, 2]),
        ("unsigned > -1", [0, 1, 2, 3]),
        ("unsigned in (9, 2.5)", [0]),
        ("unsigned < 1e400", [0, 1, 2, 3]),
        ("tiny in (9, 2.5, 300)", [0]),
        ("tiny == 300", []),
    ],
)
def test_columns_as_logs_have_them(text: str, taken: list[int]) -> None:
    assert parse(text).mask(ODD).nonzero()[0].tolist() == taken


@pytest.mark.parametrize("text", ["time > '12:00'", "lasted in ('2026-03-01')", "time == 3"])
def test_hours_and_durations_are_refused(text: str) -> None:
    with pytest.raises(SourceError, match="only dates and moments"):
        parse(text).mask(ODD)


def test_an_empty_batch_has_no_rows_that_fit() -> None:
    assert parse("age > 3 or country in ('DE')").mask(ROWS.slice(0, 0)).tolist() == []


@pytest.mark.parametrize(
    ("text", "excludes"),
    [
        ("country == 'DE'", False),
        ("country == 'AT'", True),
        ("country == 'AT' and age > 3", True),
        ("country == 'AT' or age > 3", False),
        ("not (country == 'DE' or age is null)", True),
        ("not (country == 'AT' and age > 3)", False),
        ("year >= 2027", True),
        ("year in (2025, 2026)", False),
        ("year like '20%'", False),  # an error where it is read, not a reason to leave rows out
        ("age > 3", False),
        ("none is null", False),
        ("none == 'x'", False),  # unknown, which reading leaves out row by row
    ],
)
def test_what_a_folder_says_may_exclude_all_its_rows(text: str, excludes: bool) -> None:
    assert parse(text).excludes({"country": "DE", "year": 2026, "none": None}) is excludes


def test_names_the_columns_it_asks_about() -> None:
    assert parse("a.b > 1 and (`c d` is null or a.b < x[2])").columns == ("a.b", "c d", "x[2]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (3, "is text"),
        ("country", "a comparison is missing"),
        ("country ==", "the condition ends here"),
        ("country == 'DE", "never closed"),
        ("(country == 'DE'", "never closed"),
        ("country == 'DE')", "not expected here"),
        ("country == 'DE' version == 'a'", "join two conditions"),
        ("country in 'DE'", "values in parentheses"),
        ("country in (DE)", "text stands in quotes: 'DE'"),
        ("country in ()", "a column or a value is expected"),
        ("country == null", "write: is null"),
        ("1 == 1", "two constants"),
        ("1 in (1)", "a column stands on the left"),
        ("country is 'DE'", "write =="),
        ("country && age", "write 'and'"),
        ("age + 1 > 2", "no arithmetic"),
        ("age > 1.2.3", "no number"),
        ("age > 18a", "no number"),
        ("country like 3", "quoted text"),
        ("(" * 60 + "a > 1" + ")" * 60, "deeper than"),
        ("a > 1 and " * 500 + "b > 1", "at most"),
        ("age > 1\x00", "U\\+0000"),
        ("__import__('os')", "not expected|comparison is missing"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place(text: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text)


def test_an_error_points_at_its_place() -> None:
    with pytest.raises(InputError) as caught:
        parse("age >= 18 und country == 'DE'")
    assert str(caught.value).splitlines()[1:] == ["  age >= 18 und country == 'DE'", "            ^^^"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("land == 'DE'", "no column 'land'; they have: country, age"),
        ("age == 'DE'", "'age' is int64 and cannot be compared with 'DE'; write a number"),
        ("age == true", "write a number"),
        ("shadow == 1", "write true or false"),
        ("at > 5", "a time is text"),
        ("at > 'yesterday'", "a time is text"),
        ("features == 1", "what lies inside"),
        ("age like '1%'", "like is for text"),
        ("country == age", "cannot be compared"),
    ],
)
def test_what_does_not_fit_the_log_is_told_when_it_is_read(text: str, message: str) -> None:
    where = parse(text)
    with pytest.raises(SourceError, match=message):
        where.mask(ROWS)

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from opmon.errors import InputError, SourceError
from opmon.sources.sql import behind
from opmon.testing.sources import check_source, positions_after

from .conftest import Production, column


def expected(ids: list[int]) -> pa.Table:
    return pa.table({"id": ids, "country": [f"c{k}" for k in ids]})


@pytest.mark.parametrize("cursor", ["at", "id", ("at", "id")])
def test_a_table_keeps_the_promises_of_sources(production: Production, cursor: Any) -> None:
    ids = production.requests()
    check_source(production.source(cursor=cursor), expected(ids))


def test_a_table_without_a_key_keeps_them_too_and_rows_alike_in_the_cursor_stay_together(
    production: Production,
) -> None:
    ids = production.requests(key="")
    source = production.source()
    check_source(source, expected(ids), ordered=False)
    (piece,) = source.pending({}, limit=7)
    assert piece.rows == 8  # 1, 2 and two times three


def test_a_query_keeps_them(production: Production) -> None:
    production.requests(60)
    query = "SELECT id, at, 'a:b%' AS label, country FROM requests WHERE id % 2 = 0 -- every second"
    check_source(production.source(query=query), expected(list(range(2, 61, 2))), ordered=False)


def test_a_view_and_a_name_with_its_schema_are_tables(production: Production) -> None:
    ids = production.requests()
    production.run('CREATE VIEW "Seen: by" AS SELECT * FROM requests')
    schema = "public" if production.is_postgresql else "main"
    for name in ("Seen: by", f"{schema}.requests", f"{schema}.Seen: by"):
        source = production.source(table=name)
        assert column(source, source.pending({})) == ids


def test_rows_that_were_added_are_pending_and_no_others(production: Production) -> None:
    production.requests(10)
    source, positions = production.source(), {}
    positions = positions_after(positions, source.pending(positions))
    assert source.pending(positions) == []
    production.add(range(11, 14))
    (piece,) = source.pending(positions)
    assert column(source, [piece]) == [11, 12, 13]
    assert piece.part == "requests"


def test_rows_are_left_alone_until_they_have_settled(production: Production, clock_at: Callable[[float], None]) -> None:
    production.requests(9)
    source = production.source(settle="60s")
    clock_at(61.5)
    assert column(source, source.pending({})) == [1, 2, 3, 4, 5]
    clock_at(59)
    assert source.pending({}) == []


def test_a_round_waits_from_when_its_first_row_was_settled(production: Production) -> None:
    production.requests(9, alike=1)
    (piece,) = production.source(settle="1h").pending({})
    assert piece.arrived_at == datetime(2026, 3, 1, 13, 0, 1, tzinfo=UTC)


def test_rows_without_a_cursor_are_counted_and_told(production: Production, caplog: pytest.LogCaptureFixture) -> None:
    ids = production.requests(10)
    production.run("INSERT INTO requests (id, country) VALUES (11, 'a'), (12, 'b')")
    source = production.source()
    assert column(source, source.pending({})) == ids
    assert "requests has 2 rows without a value in 'at': they are not read" in caplog.text


def test_since_says_where_a_new_monitor_begins(production: Production) -> None:
    production.requests(9, alike=1)
    source = production.source(since="2026-03-01T13:00:05+01:00")
    begins = source.begins()
    assert begins == {"requests": 'from {"at": "2026-03-01T12:00:05+00:00"}'}
    slices = source.pending(begins)
    assert column(source, slices) == [5, 6, 7, 8, 9]
    assert source.pending(positions_after({}, slices)) == []
    assert production.source().begins() == {}


def test_since_now_skips_what_is_there_for_times_and_numbers(production: Production) -> None:
    production.requests(9)
    for cursor in ("at", "id"):
        source = production.source(cursor=cursor, since="now", settle="0s")
        begins = source.begins()
        assert source.pending(begins) == []
    production.add([10])
    assert column(source, source.pending(begins)) == [10]
    with pytest.raises(InputError, match="needs a cursor that is a time; 'id' holds numbers"):
        production.source(cursor="id", since="2026-03-01").begins()


def test_columns_are_pruned_and_one_that_is_not_there_is_named(production: Production) -> None:
    production.requests(5)
    source = production.source()
    slices = source.pending({})
    assert [batch.rows.schema.names for batch in source.read(slices, ["country", "id"])] == [["country", "id"]]
    assert [batch.rows.num_rows for batch in source.read(slices, [])] == [5]
    with pytest.raises(
        SourceError, match=r"requests has no column 'county'; it has: id, at, amount, country.*'country'"
    ):
        list(source.read(slices, ["county"]))


def test_a_position_of_another_cursor_is_refused(production: Production) -> None:
    production.requests(5)
    stop = production.source(cursor="id").pending({})[0].stop
    with pytest.raises(SourceError, match="does not fit the cursor at, id"):
        production.source().pending({"requests": stop})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": None}, "table or query must be given"),
        ({"query": "SELECT 1", "table": "requests"}, "and not both"),
        ({"cursor": ()}, "cursor is a column or a list"),
        ({"cursor": ("at", "at")}, "list of different ones"),
        ({"settle": "60"}, "settle must be a number with its unit"),
        ({"since": "soon"}, "since must be a date"),
        ({"types": {"id": "int"}}, "cannot be 'int'"),
        ({"timeout": "0s"}, "timeout must be longer"),
        ({"broken": "no"}, "broken must be one of stop, skip"),
        ({"database": "bogus://u:hunter2@h/d"}, "database 'bogus://u:***@h/d' is not an address"),
        ({"database": "postgresql+psycopg://u:hun@ter2@h/d@x"}, "more than one @"),
        ({"database": "sqlite://"}, "name the file"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_read(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        Production("sqlite:///log.db").source(**options)
    assert "hunter2" not in str(caught.value)


def test_rows_that_appear_among_those_that_were_read_are_counted_with_the_next(production: Production) -> None:
    production.requests(30)
    source = production.source(cursor=["at", "id"])
    (first,) = source.pending({})
    assert source.lost([first]) == {}
    production.run("INSERT INTO requests (id, at) VALUES (:id, :at)", {"id": 900, "at": production.at(2)})
    production.run("INSERT INTO requests (id) VALUES (:id)", {"id": 901})
    assert source.pending({"requests": first.stop}) == [], "nothing new is there"
    production.add(range(31, 41))
    (second,) = source.pending({"requests": first.stop})
    assert second.rows == 10
    assert source.lost([second]) == {
        "came when their time had been read (settle: 60s)": 1,
        "have no value in 'at' or 'id'": 1,
    }
    production.add(range(41, 51))
    (third,) = source.pending({"requests": second.stop})
    assert source.lost([third]) == {}, "what is lost is told once"


def test_rows_that_appear_further_back_are_counted_too(production: Production, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behind, "LOOKED_BACK", 65)
    production.requests(0)
    source, positions = production.source(cursor=["at", "id"]), dict[str, str]()

    def next_round() -> dict[str, int]:
        (piece,) = source.pending(positions)
        positions[piece.part] = piece.stop
        return dict(source.lost([piece]))

    for first in (1, 21, 41):
        production.add(range(first, first + 20))
        assert next_round() == {}
    production.run("INSERT INTO requests (id, at) VALUES (:id, :at)", {"id": 900, "at": production.at(2)})
    production.add(range(61, 81))
    assert next_round() == {"came when their time had been read (settle: 60s)": 1}, "two rounds lie between"
    production.run("INSERT INTO requests (id, at) VALUES (:id, :at)", {"id": 901, "at": production.at(3)})
    production.add(range(81, 101))
    assert next_round() == {}, "it lies before those that are looked at"
    production.run("INSERT INTO requests (id, at) VALUES (:id, :at)", {"id": 902, "at": production.at(82)})
    production.add(range(101, 121))
    assert next_round() == {"came when their time had been read (settle: 60s)": 1}, "the last round is always looked at"

"""Types come from the table, whatever the rows hold."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from opmon.errors import SourceError
from opmon.jobs.ids import ids_of

from .conftest import Production, column

TIME = pa.timestamp("us")
UUID = "0b6f6a8e-4c1e-4f5e-9d3a-1f1f1f1f1f1f"
UTC_TIME = pa.timestamp("us", "UTC")

POSTGRES = {
    "n SMALLINT": (pa.int64(), "7", 7),
    "big BIGINT": (pa.int64(), "9223372036854775807", 2**63 - 1),
    "r REAL": (pa.float64(), "0.5", 0.5),
    "d NUMERIC(30, 10)": (pa.float64(), "12.25", 12.25),
    "whole NUMERIC(18)": (pa.int64(), "999999999999999999", 10**18 - 1),
    "none NUMERIC(5)": (pa.int64(), "'NaN'", None),
    "b BOOLEAN": (pa.bool_(), "true", True),
    "z TIMESTAMPTZ": (UTC_TIME, "'2026-03-01 12:00:00+02'", datetime(2026, 3, 1, 10, tzinfo=UTC)),
    "w TIMESTAMP": (TIME, "'2026-03-01 12:00:00.5'", datetime(2026, 3, 1, 12, 0, 0, 500_000)),  # noqa: DTZ001
    "day DATE": (pa.date32(), "'2026-03-01'", date(2026, 3, 1)),
    "t VARCHAR(20)": (pa.string(), "'ü'", "ü"),
    "u UUID": (pa.string(), f"'{UUID}'", UUID),
    "mood MOOD": (pa.string(), "'happy'", "happy"),
    "j JSON": (pa.string(), """'{"a":[1]}'""", '{"a":[1]}'),
    "jb JSONB": (pa.string(), """'{"a":[1]}'""", '{"a": [1]}'),
    "bin BYTEA": (pa.binary(), "'\\x00ff'", b"\x00\xff"),
    "xs DOUBLE PRECISION[]": (pa.list_(pa.float64()), "'{1,2.5,NULL}'", [1.0, 2.5, None]),
    "ns NUMERIC[]": (pa.list_(pa.float64()), "'{1.5}'", [1.5]),
    "us UUID[]": (
        pa.list_(pa.string()),
        "'{0b6f6a8e-4c1e-4f5e-9d3a-1f1f1f1f1f1f}'",
        ["0b6f6a8e-4c1e-4f5e-9d3a-1f1f1f1f1f1f"],
    ),
    "span INTERVAL": (pa.string(), "'1 day'", "1 day"),
    "ip INET": (pa.string(), "'10.0.0.1'", "10.0.0.1/32"),
}
SQLITE = {
    "n INTEGER": (pa.int64(), "7", 7),
    "r REAL": (pa.float64(), "0.5", 0.5),
    "d DECIMAL(10, 2)": (pa.float64(), "12", 12.0),
    "b BOOLEAN": (pa.bool_(), "1", True),
    "z TIMESTAMP": (UTC_TIME, "'2026-03-01T12:00:00.5'", datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)),
    "day DATE": (pa.date32(), "'2026-03-01'", date(2026, 3, 1)),
    "t VARCHAR(20)": (pa.string(), "'ü'", "ü"),
    "j JSON": (pa.string(), """'{"a": 1}'""", '{"a": 1}'),
    "bin BLOB": (pa.binary(), "x'00ff'", b"\x00\xff"),
    "undeclared": (pa.int64(), "3", 3),
}


def filled(production: Production, kinds: dict[str, tuple[pa.DataType, str, Any]]) -> None:
    """A table with one column of each kind, whose first row is empty."""
    production.run(f"CREATE TABLE requests (id INTEGER PRIMARY KEY, {', '.join(kinds)})")
    names = ", ".join(kind.split()[0] for kind in kinds)
    production.run("INSERT INTO requests (id) VALUES (1)")
    values = ", ".join(value for _, value, _ in kinds.values()).replace(":", r"\:")
    production.run(f"INSERT INTO requests (id, {names}) VALUES (2, {values})")


def check(production: Production, kinds: dict[str, tuple[pa.DataType, str, Any]], **options: Any) -> None:
    source = production.source(cursor="id", settle="0s", **options)
    slices = source.pending({}, limit=1)
    slices += source.pending({slices[0].part: slices[0].stop})
    batches = [batch.rows for batch in source.read(slices)]
    names = [kind.split()[0] for kind in kinds]
    assert {batch.schema for batch in batches} == {batches[0].schema}
    found = {name: batches[0].schema.field(name).type for name in names}
    assert found == {name: kind for name, (kind, _, _) in zip(names, kinds.values(), strict=True)}
    assert batches[1].select(names).to_pylist() == [
        {name: value for name, (_, _, value) in zip(names, kinds.values(), strict=True)}
    ]
    assert source.fetch(slices, {1: [0], 0: [0]}).to_pylist() == [row for one in batches for row in one.to_pylist()]


def test_types_of_postgresql(on_postgres: Production) -> None:
    on_postgres.run("CREATE TYPE mood AS ENUM ('happy', 'sad')")
    filled(on_postgres, POSTGRES)
    check(on_postgres, POSTGRES)
    check(on_postgres, POSTGRES, query="SELECT * FROM requests")


def test_types_of_sqlite(on_sqlite: Production) -> None:
    filled(on_sqlite, SQLITE)
    check(on_sqlite, SQLITE)


def test_a_value_that_does_not_fit_its_column_is_named_or_left_out(on_sqlite: Production) -> None:
    on_sqlite.requests(20)
    on_sqlite.run("UPDATE requests SET amount = 'a lot' WHERE id = 7")
    source = on_sqlite.source()
    slices = source.pending({})
    with pytest.raises(
        SourceError, match=r"requests, row 6 .*'amount' is double and cannot hold 'a lot'.*types: \{amount"
    ):
        list(source.read(slices))
    skipping = on_sqlite.source(broken="skip")
    batches = list(skipping.read(slices))
    assert [row for batch in batches for row in batch.rows["id"].to_pylist()] == [*range(1, 7), *range(8, 21)]
    assert [batch.first_row for batch in batches] == [0, 5, 7, 10, 20]
    assert list(batches[-1].unreadable.values()) == [1]
    assert skipping.fetch(slices, {0: [7, 5]})["id"].to_pylist() == [8, 6]
    as_text = on_sqlite.source(types={"amount": "string"})
    assert column(as_text, slices, "amount")[5:8] == ["1.5", "a lot", "2"]


def test_columns_inside_of_json_are_read(on_postgres: Production) -> None:
    from opmon.sources.nested import Nested

    on_postgres.run("CREATE TABLE requests (id SERIAL PRIMARY KEY, payload JSONB)")
    on_postgres.run(
        "INSERT INTO requests (payload) VALUES (:payload)", *({"payload": json.dumps({"age": k})} for k in range(3))
    )
    source = Nested(on_postgres.source(cursor="id"), ("payload.age",))
    assert [batch.rows["payload.age"].to_pylist() for batch in source.read(source.pending({}))] == [[0, 1, 2]]


def test_a_query_that_gives_a_column_twice_is_refused(on_postgres: Production) -> None:
    on_postgres.requests(3)
    with pytest.raises(SourceError, match=r"gives the column 'id' more than once"):
        on_postgres.source(query="SELECT id, id, at FROM requests").pending({})


@pytest.mark.parametrize("kind", ["NUMERIC(20)", "NUMERIC"])
def test_ids_of_many_digits_are_kept_as_text_and_refused_as_fractions(on_postgres: Production, kind: str) -> None:
    ids = [str(1_790_000_000_000_000_000 + k) for k in range(20)]
    on_postgres.run(f"CREATE TABLE requests (n SERIAL PRIMARY KEY, id {kind})")
    on_postgres.run("INSERT INTO requests (id) VALUES (CAST(:id AS NUMERIC))", *({"id": each} for each in ids))
    for where in ({}, {"query": "SELECT * FROM requests"}):
        source = on_postgres.source(cursor="n", settle="0s", types={"id": "string"}, **where)
        assert column(source, source.pending({})) == ids
        lossy = on_postgres.source(cursor="n", settle="0s", **where)
        with pytest.raises(SourceError, match=r"1\.79\d*e\+18.* does not keep every digit.*types: \{id: string\}"):
            ids_of(pa.array(column(lossy, lossy.pending({}))), "id")

"""What goes wrong in a database of somebody else's is told in words, without the password, and loses nothing."""

from __future__ import annotations

import pickle
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.errors import DatabaseUnavailable, InputError, SourceError
from opmon.sources.sql import connecting
from opmon.sources.sql.sql import Sql
from opmon.testing.sources import positions_after

from .conftest import Production, column


def test_a_table_that_is_not_there_names_those_that_are(production: Production) -> None:
    production.requests(3)
    with pytest.raises(SourceError, match=r"no table 'request'; there are: requests.*Did you mean 'requests'"):
        production.source(table="request").pending({})
    with pytest.raises(SourceError, match=r"no cursor column 'created'; it has: id, at"):
        production.source(cursor="created").pending({})


def test_an_empty_table_has_nothing_pending(production: Production) -> None:
    production.requests(0)
    for cursor in ("at", "id"):
        source = production.source(cursor=cursor, since="now")
        assert source.pending({}) == []
        assert source.pending(source.begins()) == []


def test_what_comes_into_an_empty_table_after_now_is_read(production: Production) -> None:
    """Where a monitor begins is kept, so that it is not asked again when the first rows are there."""
    production.requests(0)
    source = production.source(cursor="id", since="now", settle="0s")
    begins = source.begins()
    assert begins
    production.add([1, 2])
    assert column(source, source.pending(begins)) == [1, 2]


def test_rows_that_vanish_or_come_late_stop_the_round(production: Production) -> None:
    production.requests(20)
    source = production.source()
    slices = source.pending({})
    production.run("DELETE FROM requests WHERE id = 4")
    with pytest.raises(
        SourceError, match=r"gives 19 rows between begin and after .*, where 20 were.*not changed or remo"
    ):
        list(source.read(slices))
    with pytest.raises(SourceError, match="gives 19 rows"):
        source.fetch(slices, {0: [2]})
    production.add([4, 100], alike=3)  # of which 4 is back, and 100 is beyond
    assert column(source, slices) == list(range(1, 21))
    production.run("UPDATE requests SET at = (SELECT min(at) FROM requests) WHERE id = 100")
    with pytest.raises(SourceError, match=r"gives more rows .*raise settle"):
        list(source.read(slices))


def test_a_table_that_is_dropped_in_the_middle_is_told(production: Production) -> None:
    production.requests(3)
    source = production.source()
    slices = source.pending({})
    production.run("DROP TABLE requests")
    with pytest.raises(SourceError, match="no table 'requests'"):
        list(source.read(slices))


def test_columns_that_change_their_type_between_rounds_have_the_new_one(on_postgres: Production) -> None:
    on_postgres.requests(3)
    source = on_postgres.source()
    slices = source.pending({})
    on_postgres.run("ALTER TABLE requests ALTER amount TYPE TEXT")
    assert column(source, slices, "amount") == ["0.25", "0.5", "0.75"]
    on_postgres.run("ALTER TABLE requests ALTER at TYPE TEXT")
    with pytest.raises(SourceError, match="must be a time or a whole number"):
        source.pending(positions_after({}, slices))


def test_a_user_who_may_not_read_is_told_what_to_grant(on_postgres: Production) -> None:
    on_postgres.requests(3)
    on_postgres.run("DROP ROLE IF EXISTS stranger")
    on_postgres.run("CREATE ROLE stranger LOGIN PASSWORD 'hunter2'")
    address = on_postgres.engine.url.set(username="stranger", password="hunter2").render_as_string(hide_password=False)
    source = Sql(database=address, table="requests", cursor="at")
    with pytest.raises(SourceError, match="Grant SELECT on it") as caught:
        source.pending({})
    assert "hunter2" not in str(caught.value) + repr(source)
    on_postgres.run("DROP ROLE stranger")


def test_a_query_that_writes_changes_nothing(production: Production) -> None:
    production.requests(3)
    query = "DELETE FROM requests RETURNING id, at"
    if production.is_postgresql:
        production.run(
            "CREATE FUNCTION wipe() RETURNS SETOF requests LANGUAGE sql AS 'DELETE FROM requests RETURNING *'"
        )
        query = "SELECT * FROM wipe()"
    with pytest.raises(SourceError):
        list((source := production.source(query=query)).read(source.pending({})))
    assert production.source().pending({})[0].rows == 3


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(5)
        yield listening.getsockname()[1]


def test_a_server_that_does_not_answer_is_waited_for_within_limits(
    silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connecting._LIBPQ, "connect_timeout", 2)
    for port in (silent_port, 1):
        source = Sql(database=f"postgresql+psycopg://u:hunter2@127.0.0.1:{port}/log", table="requests", cursor="at")
        with pytest.raises(
            DatabaseUnavailable, match=r"u:\*\*\*@127.0.0.1.* did not answer.*Nothing is lost"
        ) as caught:
            source.pending({})
        assert "hunter2" not in str(caught.value)


def test_a_server_that_goes_away_while_it_is_read_is_told(on_postgres: Production) -> None:
    on_postgres.run("CREATE TABLE requests (id SERIAL PRIMARY KEY, at TIMESTAMPTZ, x TEXT)")
    on_postgres.run("INSERT INTO requests (at, x) SELECT '2026-03-01', repeat('x', 5000) FROM generate_series(1, 5000)")
    source = on_postgres.source()
    slices = source.pending({})
    reading = source.read(slices)
    next(reading)
    on_postgres.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'opmon' AND datname = "
        "current_database()"
    )
    with pytest.raises(DatabaseUnavailable, match=r"did not answer|did not go on"):
        list(reading)
    assert sum(batch.rows.num_rows for batch in source.read(slices)) == 5000


def test_a_statement_that_takes_too_long_is_ended(production: Production) -> None:
    production.requests(3)
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    query = f"SELECT *, ({forever}) AS never FROM requests"
    with pytest.raises(DatabaseUnavailable, match=r"took longer than 0.5s \(timeout\)"):
        list((source := production.source(query=query, timeout="0.5s")).read(source.pending({})))


def test_a_table_that_is_locked_is_read_the_next_time(on_postgres: Production) -> None:
    on_postgres.requests(3)
    with on_postgres.engine.connect() as altering:
        altering.execute(sa.text("ALTER TABLE requests ADD COLUMN more INT"))
        with pytest.raises(DatabaseUnavailable, match=r"timeout|holds a lock"):
            on_postgres.source(timeout="0.5s").pending({})
        altering.rollback()


def test_one_row_of_50_megabytes_is_a_row(production: Production) -> None:
    production.run("CREATE TABLE requests (id INTEGER PRIMARY KEY, at TIMESTAMP, x TEXT)")
    rows = [{"id": k, "at": production.at(k), "x": "y" * (50_000_000 if k == 2 else 10)} for k in range(1, 5)]
    production.run("INSERT INTO requests VALUES (:id, :at, :x)", *rows)
    source = production.source()
    slices = source.pending({})
    assert [len(text) for text in column(source, slices, "x")] == [10, 50_000_000, 10, 10]
    assert source.fetch(slices, {0: [3, 1]})["id"].to_pylist() == [4, 2]


def test_times_beyond_the_calendar_are_told(on_postgres: Production) -> None:
    on_postgres.requests(3)
    on_postgres.run("ALTER TABLE requests ADD seen TIMESTAMPTZ")
    on_postgres.run("UPDATE requests SET seen = 'infinity' WHERE id = 2")
    source = on_postgres.source()
    with pytest.raises(SourceError, match="infinity"):
        list(source.read(source.pending({})))


def test_bytes_that_are_no_text_are_told(on_sqlite: Production) -> None:
    on_sqlite.requests(3)
    on_sqlite.run("UPDATE requests SET country = CAST(x'ff41' AS TEXT) WHERE id = 2")
    source = on_sqlite.source()
    with pytest.raises(SourceError, match="UTF-8"):
        list(source.read(source.pending({})))


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "log.db"
    with pytest.raises(SourceError, match="cannot be opened: is the file there"):
        Sql(database=f"sqlite:///{path}", table="requests", cursor="id").pending({})
    assert not path.parent.exists()
    (tmp_path / "text.db").write_text("this is no database " * 100)
    with pytest.raises(SourceError, match="not a database"):
        Sql(database=f"sqlite:///{tmp_path / 'text.db'}", table="requests", cursor="id").pending({})


def test_a_driver_that_is_not_installed_is_named() -> None:
    with pytest.raises(InputError, match=r"'oracle://u:\*\*\*@h/d' needs a driver that is not installed"):
        Sql(database="oracle://u:hunter2@h/d", table="requests", cursor="id").pending({})


def test_readers_do_not_hold_up_writers_of_sqlite_in_wal(on_sqlite: Production) -> None:
    with sqlite3.connect(str(on_sqlite.engine.url.database)) as file:
        file.execute("PRAGMA journal_mode=WAL")
    file.close()
    on_sqlite.requests(300)
    source = on_sqlite.source()
    reading = source.read(source.pending({}))
    next(reading)
    on_sqlite.add([301])
    assert sum(batch.rows.num_rows for batch in reading) + 64 == 300


def test_two_readers_at_once_read_the_same(production: Production) -> None:
    ids = production.requests(200)
    source = pickle.loads(pickle.dumps(production.source()))
    slices = source.pending({})
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(column(source, slices))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ids] * 4

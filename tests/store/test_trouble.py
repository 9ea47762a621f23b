"""What a database cannot do is told in words, and nobody waits for ever."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from opmon.errors import DatabaseBusy, DatabaseUnavailable
from opmon.store._connections import BUSY_SECONDS, POOL
from opmon.store._inserting import insert as insert_many
from opmon.store.engine import Store, connect, open_store
from opmon.store.migrate import state
from opmon.store.schema import leases, waits


@pytest.fixture
def sqlite(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'opmon.db'}")


def insert(store: Store, monitor: str = "digits", before: str = "SELECT 1") -> None:
    with store.write() as connection:
        connection.exec_driver_sql(before)
        connection.execute(waits.insert().values(monitor=monitor, since=datetime(2026, 3, 1, tzinfo=UTC)))


# --- one pool ---------------------------------------------------------------------------------------------------------


def test_a_process_has_one_pool_for_each_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = f"sqlite:///{tmp_path / 'opmon.db'}"
    assert connect("sqlite:///opmon.db").engine is connect(whole).engine
    assert connect("sqlite:///other.db").engine is not connect(whole).engine
    assert connect("sqlite://").engine is not connect("sqlite://").engine


def test_seventy_monitors_at_once_need_few_connections(postgres: Callable[[], str]) -> None:
    url = few_connections(postgres(), POOL)
    barrier = threading.Barrier(70)

    def work(number: int) -> int:
        store = open_store(url)
        barrier.wait(60)
        with store.read() as connection:
            return int(connection.scalar(sa.text(f"SELECT {number} FROM pg_sleep(0.02)")))

    with ThreadPoolExecutor(70) as pool:
        assert sorted(pool.map(work, range(70))) == list(range(70))


def few_connections(url: str, limit: int) -> str:
    """The same database for a user who may have so many connections."""
    address = sa.engine.make_url(url)
    user = f"few_of_{address.database}"  # users belong to the server, not to the database
    with connect(url).write() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {user} LOGIN CONNECTION LIMIT {limit}")
        connection.exec_driver_sql(f"GRANT ALL ON SCHEMA public TO {user}")
    return address.set(username=user).render_as_string(hide_password=False)


def test_a_pool_that_is_used_up_is_told(postgres: Callable[[], str]) -> None:
    store = connect(postgres())
    store.engine.pool._timeout = 0.05  # type: ignore[attr-defined]
    held = [store.engine.connect() for _ in range(POOL)]
    with pytest.raises(DatabaseUnavailable, match=f"all {POOL} connections .* in use"), store.read():
        pass
    for connection in held:
        connection.close()


# --- limits of PostgreSQL's sessions ----------------------------------------------------------------------------------


def test_sessions_have_limits_unless_the_address_says_others(postgres: Callable[[], str]) -> None:
    url = postgres()
    assert limits(connect(url)) == {
        "lock_timeout": "5s",
        "statement_timeout": "1min",
        "idle_in_transaction_session_timeout": "15s",
    }
    own = limits(connect(f"{url}{'&' if '?' in url else '?'}options=-c%20lock_timeout%3D3s"))
    assert own["lock_timeout"] == "3s"
    assert own["statement_timeout"] == "1min"


def limits(store: Store) -> dict[str, str]:
    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
    with store.read() as connection:
        return {name: str(connection.scalar(sa.text(f"SHOW {name}"))) for name in names}


def with_options(url: str, **options: str) -> str:
    said = "%20".join(f"-c%20{name}%3D{value}" for name, value in options.items())
    return f"{url}{'&' if '?' in url else '?'}options={said}"


def test_a_row_that_is_held_too_long_is_told(postgres: Callable[[], str]) -> None:
    url = with_options(postgres(), lock_timeout="50ms")
    store = open_store(url)
    insert(store)
    with store.write() as holder:
        holder.execute(sa.select(waits).with_for_update())
        with pytest.raises(DatabaseBusy, match="lock_timeout"), store.write() as connection:
            connection.execute(waits.delete())


def test_a_file_that_is_damaged_while_it_is_open_is_told(sqlite: Store, tmp_path: Path) -> None:
    insert(sqlite)
    file = tmp_path / "opmon.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE another (a)")
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with file.open("r+b") as opened:
        opened.write(b"no database" * 1000)
    with pytest.raises(DatabaseUnavailable, match="not a SQLite database"):
        insert(sqlite, "other")


@pytest.mark.parametrize(
    ("before", "told"),
    [("SET LOCAL statement_timeout = '1ms'", "took longer than statement_timeout"), ("DROP TABLE waits", "missing")],
)
def test_what_keeps_many_rows_from_being_written_is_told(postgres: Callable[[], str], before: str, told: str) -> None:
    store, at = open_store(postgres()), datetime(2026, 3, 1, tzinfo=UTC)

    def write_many() -> None:
        with store.write() as connection:
            connection.exec_driver_sql(before)
            insert_many(connection, waits, ("monitor", "since"), [(f"m{number}", at) for number in range(50_000)])

    with pytest.raises(DatabaseUnavailable, match=told):
        write_many()


def test_a_transaction_that_stands_still_is_ended(postgres: Callable[[], str]) -> None:
    url = postgres()
    open_store(url)
    store = connect(with_options(url, idle_in_transaction_session_timeout="50ms"))

    def stand_still() -> None:
        with store.write() as connection:
            pid = connection.scalar(sa.text("SELECT pg_backend_pid()"))
            until_gone(store, pid)
            connection.execute(sa.select(waits))

    with pytest.raises(DatabaseUnavailable, match=r"stood still|did not answer"):
        stand_still()
    with store.read() as connection:  # the pool has another connection
        assert connection.scalar(sa.select(sa.func.count()).select_from(waits)) == 0


def until_gone(store: Store, pid: int) -> None:
    """Wait until the server has ended a session."""
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as other:
        while other.scalar(sa.text(f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}")):
            time.sleep(0.01)


def test_rights_that_are_missing_are_told(postgres: Callable[[], str]) -> None:
    url = postgres()
    open_store(url)
    with pytest.raises(DatabaseUnavailable, match="Grant it all rights"):
        insert(connect(few_connections(url, 5)))


def test_a_server_that_takes_no_connection_is_told_by_what_helps(postgres: Callable[[], str]) -> None:
    owner = postgres()
    url = few_connections(owner, 1)
    with connect(url).read(), pytest.raises(DatabaseUnavailable, match="raise max_connections"):
        insert(connect(f"{url}&application_name=other"))
    nowhere = sa.engine.make_url(owner).set(database="nowhere").render_as_string(hide_password=False)
    with pytest.raises(DatabaseUnavailable, match=r"is not there\. Create it, or name another"):
        open_store(nowhere)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (None, "knows no such user"),
        ("NOLOGIN", "may not log in"),
        ("LOGIN", "Grant CONNECT on it"),
    ],
)
def test_a_user_whom_the_server_does_not_let_in_is_told_by_what_helps(
    postgres: Callable[[], str], made: str | None, words: str
) -> None:
    url = postgres()
    address = sa.engine.make_url(url)
    user = f"unwanted_in_{address.database}"
    with connect(url).write() as connection:
        connection.exec_driver_sql(f"REVOKE CONNECT ON DATABASE {address.database} FROM public")
        if made is not None:
            connection.exec_driver_sql(f"CREATE ROLE {user} {made}")
    with pytest.raises(DatabaseUnavailable, match=words) as raised:
        open_store(address.set(username=user).render_as_string(hide_password=False))
    assert "did not answer" not in str(raised.value)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("sslmode=requier", "'database' cannot be used as it is written: invalid sslmode value"),
        ("ssl_mode=require", 'cannot be used as it is written: invalid connection option "ssl_mode"'),
        ("connect_timeout=ten", "cannot be used as it is written: bad value for connect_timeout"),
        ("options=-c%20no.such.thing", r"refused the connection: .*no\.such\.thing"),
        ("target_session_attrs=standby", "target_session_attrs asks for"),
    ],
)
def test_an_address_that_cannot_be_used_is_told(postgres: Callable[[], str], query: str, words: str) -> None:
    with pytest.raises(DatabaseUnavailable, match=words):
        open_store(f"{postgres()}&{query}")


def test_an_address_from_the_environment_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = "postgresql+psycopg://ann@127.0.0.1:1/opmon"
    with pytest.raises(DatabaseUnavailable, match="'database' names it"):
        open_store(nobody)
    monkeypatch.setenv("OPMON_DATABASE", nobody)
    with pytest.raises(DatabaseUnavailable, match="OPMON_DATABASE names it") as raised:
        open_store(nobody)
    assert "'database'" not in str(raised.value)


def read_only(url: str, said: str) -> None:
    """Let new sessions take writes, or none: as the primary, and as a standby."""
    address = sa.engine.make_url(url)
    operator = connect(address.set(database="postgres").render_as_string(hide_password=False))
    with operator.write() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {address.database} SET default_transaction_read_only = {said}")


def test_sessions_that_lead_to_a_standby_are_not_kept(postgres: Callable[[], str]) -> None:
    url = postgres()
    store = open_store(url)
    read_only(url, "on")
    store.engine.dispose()
    with store.read(), pytest.raises(DatabaseUnavailable, match=r"takes no writes now.* Nothing is lost"):
        insert(store)
    store.engine.dispose()
    with ThreadPoolExecutor(2) as pool:  # sessions of the standby's, one of which finds that out
        list(pool.map(lambda _: _reads(store), range(2)))
    read_only(url, "off")
    with pytest.raises(DatabaseUnavailable, match="takes no writes now"):
        insert(store)
    insert(store)


def _reads(store: Store) -> None:
    with store.read() as connection:
        connection.execute(sa.text("SELECT pg_sleep(0.1)"))


# --- SQLite's file ----------------------------------------------------------------------------------------------------


def test_a_full_disk_is_told(sqlite: Store) -> None:
    with sqlite.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    with pytest.raises(DatabaseUnavailable, match="disk that holds it is full"):  # SQLite finds it as full as a disk
        insert(sqlite, "m" * 200_000, f"PRAGMA max_page_count = {pages}")


def test_a_disk_that_takes_no_writes_is_told(sqlite: Store) -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot be written"):
        insert(sqlite, before="PRAGMA query_only = ON")
    sqlite.close()


def test_a_writer_that_does_not_let_go_is_told(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'opmon.db'}?timeout=0.05")
    begun = time.monotonic()
    with store.write(), pytest.raises(DatabaseBusy, match="stopped or hangs"), store.write():
        pass
    assert time.monotonic() - begun < BUSY_SECONDS, "it waits as long as the address says, in one process too"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseUnavailable, match="folder cannot be made"):
        connect(f"sqlite:///{tmp_path / 'file' / 'opmon.db'}")


def test_a_file_that_was_replaced_is_not_written_to_any_more(tmp_path: Path, sqlite: Store) -> None:
    insert(sqlite)
    for path in tmp_path.glob("opmon.db*"):
        path.rename(path.with_name(f"old-{path.name}"))
    with pytest.raises(DatabaseUnavailable, match="emptied, replaced or half restored"):
        insert(sqlite)
    insert(open_store(sqlite.engine.url.render_as_string()))


# --- the state of the tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ("DROP TABLE alembic_version", "alembic_version, the table that says at which schema"),
        ("DELETE FROM alembic_version", "missing or empty"),
        ("UPDATE alembic_version SET version_num = '0000'", "schema 0000, which this opmon does not know"),
        ("UPDATE alembic_version SET version_num = '9999'", "newer opmon"),
        ("INSERT INTO alembic_version VALUES ('0000')", "does not know"),
    ],
)
def test_tables_that_cannot_be_brought_up_to_date(database: str, done: str, words: str) -> None:
    with open_store(database).write() as connection:
        connection.exec_driver_sql(done)
    with pytest.raises(DatabaseUnavailable, match=words):
        open_store(database)
    with pytest.raises(DatabaseUnavailable, match=words):
        state(connect(database))


def test_the_database_of_another_program_is_left_alone(empty_database: str) -> None:
    store = connect(empty_database)
    with store.write() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('bf29a5ff90ea')")
    with pytest.raises(DatabaseUnavailable, match="belongs to another program"):
        open_store(empty_database)
    with store.read() as connection:
        assert not sa.inspect(connection).has_table(leases.name)


def test_columns_of_another_release_are_told(database: str) -> None:
    store = open_store(database)
    with pytest.raises(DatabaseUnavailable, match="Start the new release"), store.read() as connection:
        connection.execute(sa.text("SELECT what_comes_later FROM waits"))

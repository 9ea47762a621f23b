from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection

from opmon.errors import ConfigError, DatabaseUnavailable
from opmon.store import _connections
from opmon.store._among import among
from opmon.store.engine import connect, open_store
from opmon.store.migrate import HEAD
from opmon.store.schema import labels, leases, metadata


def test_open_makes_every_table(empty_database: str) -> None:
    store = open_store(empty_database)
    with store.read() as connection:
        assert set(metadata.tables) <= set(sa.inspect(connection).get_table_names())


def test_migrations_lead_to_the_schema(empty_database: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    store = open_store(empty_database)
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_head_is_the_newest_migration() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    import opmon.store

    config = Config()
    config.set_main_option("script_location", str(Path(opmon.store.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_many_processes_may_open_an_empty_database_together(empty_database: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: open_store(empty_database), range(8)))
    with stores[0].read() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM alembic_version")) == 1


def test_a_newer_database_is_refused(database: str) -> None:
    with open_store(database).write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseUnavailable, match="upgrade opmon"):
        open_store(database)


def test_a_failed_transaction_leaves_nothing(database: str) -> None:
    store = open_store(database)

    def fail() -> None:
        with store.write() as connection:
            connection.execute(leases.insert().values(name="a", holder="h|1||", token=1, expires_at=_moment()))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(leases)) == 0


def test_moments_come_back_with_their_zone(database: str) -> None:
    store = open_store(database)
    with store.write() as connection:
        connection.execute(leases.insert().values(name="a", holder="h|1||", token=1, expires_at=_moment()))
        assert connection.scalar(sa.select(leases.c.expires_at)) == _moment()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "opmon.db"
    path.write_text("this is not a database, but a text that is long enough to be looked at as one" * 20)
    with pytest.raises(DatabaseUnavailable, match="not a SQLite database"):
        open_store(f"sqlite:///{path}")


@pytest.mark.parametrize(
    ("url", "word"),
    [("", "address"), ("nonsense", "address"), ("mysql://u:secret@h/d", "not supported"), ("oracle+x://a", "address")],
)
def test_addresses_that_cannot_be(url: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as caught:
        connect(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_names_no_password() -> None:
    with pytest.raises(DatabaseUnavailable, match="did not answer") as caught:
        open_store("postgresql+psycopg://user:secret@127.0.0.1:1/opmon")
    assert "secret" not in str(caught.value)


def _moment():  # type: ignore[no-untyped-def]
    from datetime import datetime, timedelta, timezone

    return datetime(2026, 3, 1, 12, 30, tzinfo=timezone(timedelta(hours=5)))


def test_a_connection_that_has_rested_is_asked_whether_it_lives(
    postgres: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(postgres())
    monkeypatch.setattr(_connections, "UNASKED", 0.0)
    with store.read() as connection:
        own = connection.scalar(sa.text("SELECT pg_backend_pid()"))
    other = sa.create_engine(store.engine.url)
    with other.connect() as connection:
        assert connection.scalar(sa.text("SELECT pg_terminate_backend(:pid, 10000)"), {"pid": own})
    other.dispose()
    with store.read() as connection:
        assert connection.scalar(sa.text("SELECT pg_backend_pid()")) != own


def test_transactions_that_follow_each_other_ask_nothing_between(
    postgres: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(postgres())
    asked: list[object] = []
    ping = store.engine.dialect.do_ping

    def note(connection: DBAPIConnection) -> bool:
        asked.append(connection)
        return ping(connection)

    monkeypatch.setattr(store.engine.dialect, "do_ping", note)
    monkeypatch.setattr(_connections, "UNASKED", 3600.0)
    for _ in range(3):
        with store.read() as connection:
            connection.execute(sa.text("SELECT 1"))
    assert asked == []
    monkeypatch.setattr(_connections, "UNASKED", 0.0)
    with store.read() as connection:
        connection.execute(sa.text("SELECT 1"))
    assert len(asked) == 1


def test_opening_a_database_again_leaves_its_locks(tmp_path: Path) -> None:
    """Else another process that comes and goes removes the log of what this one wrote, and it is lost."""
    path = tmp_path / "opmon.db"
    store = open_store(f"sqlite:///{path}")
    with store.write() as connection:
        connection.execute(sa.text("CREATE TABLE mine (x INTEGER)"))
    open_store(f"sqlite:///{path}")
    come_and_go = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM mine'); c.close()"
    subprocess.run([sys.executable, "-c", come_and_go, str(path)], check=True)
    assert path.with_name("opmon.db-wal").exists(), "this process writes to it"
    with store.write() as connection:
        connection.execute(sa.text("INSERT INTO mine VALUES (1)"))
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM mine").fetchone() == (1,)


def test_a_query_that_is_asked_often_is_planned_for_the_keys_of_each_time(postgres: Callable[[], str]) -> None:
    store = open_store(postgres())
    asked = sa.select(labels.c.id).order_by(labels.c.id)
    with store.read() as connection:
        for _ in range(20):
            connection.execute(asked.where(among(connection, labels.c.task_id, [1, 2]))).all()
        assert connection.scalar(sa.text("SELECT count(*) FROM pg_prepared_statements")) == 0

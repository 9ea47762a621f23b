"""How this process connects: one pool for each database, and limits that let nobody be held up for ever.

On PostgreSQL every session has limits of its own: a wait for a row, a query, and standing still inside a transaction
all end by themselves. So a process that is stopped inside a transaction, or whose machine is gone, holds what it locked
for :data:`IDLE` at most. What the address itself says in ``options`` or as a parameter is not overruled.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.engine.interfaces import DBAPIConnection, ExceptionContext
from sqlalchemy.exc import DisconnectionError, InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry

from opmon.errors import DatabaseUnavailable
from opmon.private import make_private
from opmon.store._documents import as_json
from opmon.store._texts import HALVES, NOT_TAKEN, taken
from opmon.store._turns import Line, begin

BUSY_SECONDS = 30.0
"""How long a writer waits for another one on SQLite."""
POOL = 10
"""Connections that one process has open to a database at most."""
UNASKED = 1.0
"""A connection that was given back no longer than so many seconds ago is used without asking whether it still lives."""
IDLE = "15s"
"""How long a session of PostgreSQL may stand still inside a transaction."""
_SESSION = {"lock_timeout": "5s", "statement_timeout": "60s", "idle_in_transaction_session_timeout": IDLE}
UNHURRIED = ("lock_timeout = '10min'", "statement_timeout = 0", "idle_in_transaction_session_timeout = '10min'")
"""What a transaction on PostgreSQL sets for itself that may take minutes."""
UNHURRIED_SECONDS = 600
READ_ONLY = "25006"
"""SQLSTATE of a write where none is taken."""
_LIBPQ = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "opmon",
}

_pools: dict[tuple[int, str], Engine] = {}
_lines: WeakKeyDictionary[Engine, Line] = WeakKeyDictionary()
_lock = threading.Lock()


def pool_of(url: URL) -> Engine:
    """The connections of this process to the database at ``url``: made once, shared by everybody who asks."""
    if url.get_dialect().name == "sqlite":
        if url.database in (None, "", ":memory:"):
            return _sqlite(url)  # each is a database of its own
        url = url.set(database=_whole(str(url.database)))
    key = os.getpid(), url.render_as_string(hide_password=False)
    with _lock:
        if key not in _pools:
            _pools[key] = _sqlite(url) if url.get_dialect().name == "sqlite" else _postgresql(url)
        return _pools[key]


@contextmanager
def turn_to_write(engine: Engine, unhurried: bool) -> Iterator[None]:
    """Wait for one's turn among those of this process that write to the same SQLite file."""
    line = _lines.get(engine)
    if line is None:
        yield
        return
    with line.turn(UNHURRIED_SECONDS if unhurried else _patience(engine.url)):
        yield


def written_back(engine: Engine) -> bool:
    """Bring all that was written into the file of SQLite and empty the one beside it: either may still hold what was
    removed, for as long as others have it open and write little. False where one of them reads or writes for too long.
    """
    if engine.dialect.name != "sqlite":
        return True
    pooled = engine.raw_connection()
    try:
        driver = pooled.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.execute(f"PRAGMA busy_timeout = {int(1000 * _patience(engine.url))}")
        (busy, *_) = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        return False
    finally:
        pooled.close()
    return not busy


def _patience(url: URL) -> float:
    """The seconds that a writer waits for another one on SQLite, whichever process that one is in."""
    return float(str(url.query.get("timeout", BUSY_SECONDS)))


def _whole(path: str) -> str:
    """The path from the root on, so that it means one file whatever folder the process changes to."""
    if path.startswith("file:"):
        return path
    absolute = Path(path).absolute()
    try:
        absolute.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise DatabaseUnavailable(
            f"the database {path}: its folder cannot be made: {exc.strerror}. Make it, or name another in 'database'."
        ) from exc
    with suppress(OSError):  # SQLite tells what is wrong
        make_private(absolute)  # what it writes beside the file takes its mode
    return str(absolute)


def _postgresql(url: URL) -> Engine:
    libpq = url.get_driver_name().startswith("psycopg")
    given: dict[str, object] = {}
    if libpq:
        given = {name: value for name, value in _LIBPQ.items() if name not in url.query}
    if url.get_driver_name() == "psycopg":
        # what is prepared keeps its plan: one made for an empty table, or for few keys, takes minutes for many
        given["prepare_threshold"] = None
    engine = sa.create_engine(
        url, connect_args=given, pool_size=POOL, max_overflow=0, pool_use_lifo=True, json_serializer=as_json
    )  # none beyond the pool: a server counts a connection that was closed until its process is gone
    _write_texts(engine, NOT_TAKEN)

    @sa.event.listens_for(engine, "connect")
    def _(connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        said = str(url.query.get("options", ""))
        cursor = connection.cursor()
        for name, value in _SESSION.items():
            if name not in said:
                cursor.execute(f"SET SESSION {name} = '{value}'")
        cursor.close()
        connection.commit()

    @sa.event.listens_for(engine, "handle_error")
    def _(context: ExceptionContext) -> None:
        """A session that takes no writes may never take any again: it leads to a server that became a standby."""
        if getattr(context.original_exception, "sqlstate", None) == READ_ONLY:
            context.is_disconnect = True  # all that are open are closed, and new ones look for the primary

    @sa.event.listens_for(engine, "checkin")
    def _(connection: DBAPIConnection | None, record: ConnectionPoolEntry) -> None:
        record.info["given_back"] = time.monotonic()

    @sa.event.listens_for(engine, "checkout")
    def _(connection: DBAPIConnection, record: ConnectionPoolEntry, proxy: object) -> None:
        """Where transactions follow each other, the question would be a tenth of what each says to the server."""
        now = time.monotonic()
        if now - record.info.get("given_back", now) <= UNASKED:  # one that is new has not been given back
            return
        dbapi = engine.dialect.loaded_dbapi
        try:
            engine.dialect.do_ping(connection)
        except dbapi.Error as exc:
            raise InvalidatePoolError from exc

    return engine


def _sqlite(url: URL) -> Engine:
    given = {"check_same_thread": False} | ({} if "timeout" in url.query else {"timeout": BUSY_SECONDS})
    engine = sa.create_engine(url, connect_args=given, json_serializer=as_json)
    path = url.database
    _lines[engine] = Line()
    _write_texts(engine, HALVES)

    @sa.event.listens_for(engine, "connect")
    def _(connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()
        record.info["file"] = _identity(path)

    @sa.event.listens_for(engine, "checkout")
    def _(connection: DBAPIConnection, record: ConnectionPoolEntry, proxy: object) -> None:
        """What is written to a file that was replaced is lost: the next connection opens the one there is."""
        if record.info["file"] != _identity(path):
            raise DisconnectionError("the database's file was replaced")

    @sa.event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        options = connection.get_execution_options()
        how, unhurried = options.get("opmon_begin", "IMMEDIATE"), bool(options.get("opmon_unhurried"))
        seconds = UNHURRIED_SECONDS if unhurried else _patience(url)
        driver = connection.connection.driver_connection
        if how == "IMMEDIATE" and isinstance(driver, sqlite3.Connection):
            driver.execute("PRAGMA busy_timeout = 0")
            begun = begin(driver, seconds)
            driver.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
            if begun:
                return
            seconds = 0  # it is told as SQLite tells it
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
        connection.exec_driver_sql(f"BEGIN {how}")

    return engine


def _write_texts(engine: Engine, not_taken: re.Pattern[str]) -> None:
    """Have no statement fail for a text that the database does not take."""

    @sa.event.listens_for(engine, "before_cursor_execute", retval=True)
    def _(
        connection: Connection, cursor: object, statement: str, parameters: object, context: object, many: bool
    ) -> tuple[str, object]:
        return statement, taken(parameters, not_taken)


def _identity(path: str | None) -> tuple[int, int] | None:
    """Which file a path leads to now; None where it leads to none."""
    try:
        found = os.stat(path or "")  # noqa: PTH116 - on each use of a connection
    except OSError:
        return None
    return found.st_dev, found.st_ino

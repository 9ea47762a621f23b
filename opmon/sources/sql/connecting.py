"""Connecting to a database that belongs to production: it is only read, and nothing is waited for without end."""

from __future__ import annotations

import functools
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from opmon.errors import InputError, OpmonError
from opmon.redaction import shown_address
from opmon.sources.sql.trouble import trouble

_CONNECT_SECONDS = 10
_LIBPQ = {
    "connect_timeout": _CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "opmon",
}
_MYSQL = {"connect_timeout": _CONNECT_SECONDS}
_ENGINES = 64
"""The most addresses whose compiled statements are kept."""
_GRACE = 10.0
"""Seconds that a server may take longer than it was told to end a statement."""
_ACTIVE = 1
"""A statement is under way, as libpq says."""
_STEPS = 100_000
"""After so many steps of its machine SQLite asks whether to go on."""


@dataclass
class Session:
    """A connection in a transaction that only reads. ``step()`` says that the next statement, or fetch, begins."""

    connection: Connection
    timeout: timedelta
    deadline: float = 0.0

    @property
    def dialect(self) -> str:
        return self.connection.dialect.name

    def step(self) -> None:
        self.deadline = time.monotonic() + self.timeout.total_seconds()

    def is_over(self) -> bool:
        return time.monotonic() > self.deadline

    def rows(self, statement: sa.Executable) -> list[Any]:
        """All that a statement gives."""
        self.step()
        return list(self.connection.execute(statement))

    def row(self, statement: sa.Executable) -> Any:
        """The first row that a statement gives; None where it gives none."""
        self.step()
        return self.connection.execute(statement).first()


def parsed(address: str) -> URL:
    """The address, checked as far as that needs no connection."""
    try:
        url = sa.engine.make_url(address)
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError) as exc:
        raise InputError(
            f"database {shown_address(address)!r} is not an address that SQLAlchemy knows; it is such as "
            f"postgresql+psycopg://user:${{DB_PASSWORD}}@host/name or sqlite:///log.db"
        ) from exc
    except ImportError as exc:
        raise _no_driver(address, exc) from exc
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise InputError("database sqlite:// is empty: name the file, such as sqlite:///log.db")
    if "@" in (url.database or "") and url.get_backend_name() != "sqlite":
        raise InputError(f"database {shown_address(address)!r} has more than one @: write those of the password as %40")
    return url


@contextmanager
def session(address: str, what: str, timeout: timedelta) -> Iterator[Session]:
    """A session that reads ``what``; errors are opmon's, and name the database without its password."""
    engine = _engine(parsed(address), address)
    try:
        with engine.connect() as connection:
            opened = Session(connection, timeout)
            _bounded(opened)
            with _cut_off(opened):
                yield opened
    except OpmonError:
        raise
    except SQLAlchemyError as exc:
        raise trouble(shown_address(address), what, exc, timeout) from exc


@functools.lru_cache(_ENGINES)
def _engine(url: URL, address: str) -> Engine:
    """It keeps no connection, but the statements that SQLAlchemy has compiled: those of a look are always the same."""
    backend = url.get_backend_name()
    options: dict[str, Any] = {}
    if backend == "postgresql" and url.get_driver_name().startswith("psycopg"):
        options = {name: value for name, value in _LIBPQ.items() if name not in url.query}
        if url.get_driver_name() == "psycopg":
            options["prepare_threshold"] = None  # a pooler between may not keep what was prepared
    elif url.get_driver_name() in ("pymysql", "mysqldb", "mysqlconnector"):
        options = dict(_MYSQL)
    try:
        if backend == "sqlite" and not str(url.database).startswith("file:"):
            return sa.create_engine(url, creator=lambda: _read_only(str(url.database)), poolclass=NullPool)
        return sa.create_engine(url, connect_args=options, poolclass=NullPool)
    except ImportError as exc:
        raise _no_driver(address, exc) from exc


def _read_only(path: str) -> sqlite3.Connection:
    """A file that is not there is not made."""
    address = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=30, check_same_thread=False, isolation_level=None)


def _bounded(opened: Session) -> None:
    """Limits for this transaction alone, so that they hold, and end, behind a pooler too."""
    connection, milliseconds = opened.connection, int(opened.timeout.total_seconds() * 1000)
    if opened.dialect == "postgresql":
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        for name, value in (
            ("statement_timeout", milliseconds),
            ("lock_timeout", "10s"),
            ("idle_in_transaction_session_timeout", "1h"),
            ("timezone", "UTC"),
        ):
            connection.exec_driver_sql(f"SET LOCAL {name} = '{value}'")
    elif opened.dialect == "sqlite":
        raw: Any = connection.connection.dbapi_connection
        connection.exec_driver_sql("PRAGMA query_only=ON")
        opened.step()
        raw.set_progress_handler(opened.is_over, _STEPS)
    elif opened.dialect in ("mysql", "mariadb"):
        connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
        connection.exec_driver_sql("SET time_zone = '+00:00'")


@contextmanager
def _cut_off(opened: Session) -> Iterator[None]:
    """Cut the connection to a PostgreSQL that does not end a statement by itself: one that is stopped, or gone."""
    if opened.dialect != "postgresql":
        yield
        return
    opened.step()
    driver: Any = opened.connection.connection.driver_connection
    errors: type[Exception] = opened.connection.dialect.loaded_dbapi.Error  # closed just now
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(max(1.0, opened.deadline + _GRACE - time.monotonic())):
            if time.monotonic() > opened.deadline + _GRACE and driver.info.transaction_status == _ACTIVE:
                with suppress(OSError, errors), socket.socket(fileno=os.dup(driver.fileno())) as connected:
                    connected.shutdown(socket.SHUT_RDWR)
                return

    threading.Thread(target=watch, name="sql-deadline", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _no_driver(address: str, exc: ImportError) -> InputError:
    hint = "install it"
    if address.startswith("postgres"):
        hint = "run pip install 'opmon[postgresql]' and write postgresql+psycopg://"
    return InputError(f"database {shown_address(address)!r} needs a driver that is not installed ({exc.name}): {hint}")

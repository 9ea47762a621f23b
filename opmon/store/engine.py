"""Opening the database, and the only two ways to talk to it: ``read()`` and ``write()``, one transaction each.

On SQLite a writer takes the write lock when it begins (``BEGIN IMMEDIATE``), so that two processes queue instead of
failing half way. On PostgreSQL writing transactions are ``READ COMMITTED`` and the lease row is locked where it
matters; reading ones see one moment of the database (``REPEATABLE READ``), as on SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import ArgumentError, DatabaseError, InterfaceError, NoSuchModuleError, OperationalError

from opmon.errors import ConfigError, DatabaseUnavailable, OpmonError

BUSY_SECONDS = 30


@dataclass(frozen=True)
class Store:
    """An open database. Make one with :func:`open_store`."""

    engine: Engine

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self._transaction("DEFERRED") as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that may write: all of it lands or none."""
        with self._transaction("IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        try:
            options: dict[str, Any] = {"opmon_begin": begin}
            if begin == "DEFERRED" and not self.is_sqlite:
                options["isolation_level"] = "REPEATABLE READ"
            with self.engine.connect().execution_options(**options) as connection, connection.begin():
                yield connection
        except OpmonError:
            raise
        except (OperationalError, InterfaceError) as exc:
            raise _unavailable(self.engine.url, exc) from exc
        except DatabaseError as exc:
            if "file is not a database" in str(exc):
                raise DatabaseUnavailable(
                    f"{self.where} is not a SQLite database; move that file away or name another in 'database'"
                ) from exc
            raise

    @property
    def where(self) -> str:
        """The address without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    def close(self) -> None:
        self.engine.dispose()


def open_store(url: str) -> Store:
    """Connect to ``url`` and bring its tables up to date."""
    from opmon.store.migrate import upgrade

    store = connect(url)
    upgrade(store)
    return store


def connect(url: str) -> Store:
    """Connect to ``url`` without looking at its tables."""
    try:
        parsed = sa.engine.make_url(url)
        dialect = parsed.get_dialect().name
    except (ArgumentError, NoSuchModuleError) as exc:
        raise ConfigError(
            f"database {_hidden(url)!r} is not an address; "
            "use sqlite:///opmon.db or postgresql+psycopg://user:password@host/name"
        ) from exc
    if dialect not in ("sqlite", "postgresql"):
        raise ConfigError(f"database {_hidden(url)!r}: {dialect} is not supported; use sqlite or postgresql+psycopg")
    if dialect == "sqlite" and parsed.database and parsed.database != ":memory:":
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {"pool_pre_ping": dialect == "postgresql"}
    if dialect == "sqlite":
        options["connect_args"] = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    else:
        options["connect_args"] = {"connect_timeout": 10}
    try:
        engine = sa.create_engine(parsed, **options)
    except ImportError as exc:
        raise ConfigError(
            f"database {_hidden(url)!r} needs a driver that is not installed ({exc.name}): "
            "run pip install 'opmon[postgresql]' and write postgresql+psycopg://"
        ) from exc
    if dialect == "sqlite":
        _prepare_sqlite(engine)
    return Store(engine)


def _prepare_sqlite(engine: Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def _(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        how = connection.get_execution_options().get("opmon_begin", "IMMEDIATE")
        connection.exec_driver_sql(f"BEGIN {how}")


def _unavailable(url: sa.URL, exc: Exception) -> DatabaseUnavailable:
    reason = str(getattr(exc, "orig", exc)).strip().splitlines()
    return DatabaseUnavailable(
        f"the database {url.render_as_string(hide_password=True)} did not answer: "
        f"{reason[0] if reason else type(exc).__name__}. Check that it runs and that 'database' names it."
    )


def _hidden(url: str) -> str:
    try:
        return sa.engine.make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url.split("@")[-1]

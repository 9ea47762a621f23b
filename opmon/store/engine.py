"""Opening the database, and the only two ways to talk to it: ``read()`` and ``write()``, one transaction each.

On SQLite a writer takes the write lock when it begins (``BEGIN IMMEDIATE``), so that two processes queue instead of
failing half way. On PostgreSQL writing transactions are ``READ COMMITTED`` and the lease row is locked where it
matters; reading ones see one moment of the database (``REPEATABLE READ``), as on SQLite.

A process has one pool of connections for each database, however many monitors it runs; :mod:`_connections` makes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import sqlalchemy as sa
import sqlalchemy.orm  # MLflow imports it in whatever thread asks it first, and queries of others then fail
from sqlalchemy.engine import Connection as Connection
from sqlalchemy.engine import Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from opmon.errors import ConfigError, DatabaseBusy, OpmonError
from opmon.redaction import shown_address
from opmon.store._connections import POOL, UNHURRIED, pool_of, turn_to_write, written_back
from opmon.store._stalled import end_stalled
from opmon.store._trouble import trouble

_troubled: WeakKeyDictionary[Engine, float] = WeakKeyDictionary()
"""When each database last did not do as asked."""


@dataclass(frozen=True)
class Store:
    """An open database. Make one with :func:`open_store`."""

    engine: Engine

    @contextmanager
    def read(self, *, unhurried: bool = False) -> Iterator[Connection]:
        """A transaction that only reads; one that is ``unhurried`` may take minutes."""
        with self._transaction("DEFERRED", unhurried) as connection:
            yield connection

    @contextmanager
    def write(self, *, unhurried: bool = False) -> Iterator[Connection]:
        """A transaction that may write: all of it lands or none.

        One that is ``unhurried`` may take minutes, and waits as long for others.
        """
        with turn_to_write(self.engine, unhurried), self._transaction("IMMEDIATE", unhurried) as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str, unhurried: bool = False) -> Iterator[Connection]:
        try:
            options: dict[str, object] = {"opmon_begin": begin, "opmon_unhurried": unhurried}
            if begin == "DEFERRED" and not self.is_sqlite:
                options["isolation_level"] = "REPEATABLE READ"
            with self.engine.connect().execution_options(**options) as connection, connection.begin():
                if unhurried and not self.is_sqlite:
                    for setting in UNHURRIED:
                        connection.exec_driver_sql(f"SET LOCAL {setting}")
                yield connection
        except OpmonError:
            raise
        except (SQLAlchemyError, self._driver_error) as exc:
            error = trouble(self.where, self._wrapped(exc), POOL)
            if error is None:
                raise
            if not isinstance(error, DatabaseBusy):
                _troubled[self.engine] = time.monotonic()
            elif not self.is_sqlite:
                error.freed = end_stalled(self.engine) > 0
            raise error from exc

    @property
    def _driver_error(self) -> type[Exception]:
        """What the driver raises where it is asked without SQLAlchemy: to begin on SQLite, to write many rows."""
        error: type[Exception] = self.engine.dialect.loaded_dbapi.Error
        return error

    def _wrapped(self, exc: Exception) -> SQLAlchemyError:
        """An error of the driver's as SQLAlchemy raises it."""
        if isinstance(exc, SQLAlchemyError):
            return exc
        return DBAPIError.instance(None, None, exc, self._driver_error)

    def was_out_of_reach(self, seconds: float) -> bool:
        """Whether this process had trouble with the database within so many seconds."""
        at = _troubled.get(self.engine)
        return at is not None and time.monotonic() - at < seconds

    def write_back(self) -> bool:
        """Leave nothing of what was removed in SQLite's files; false where others have them in use for too long."""
        return written_back(self.engine)

    @property
    def where(self) -> str:
        """The address without its password."""
        return shown_address(self.engine.url.render_as_string(hide_password=False))

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
    except (ArgumentError, NoSuchModuleError, ValueError) as exc:
        raise ConfigError(
            f"database {shown_address(url)!r} is not an address; "
            "use sqlite:///opmon.db or postgresql+psycopg://user:password@host/name"
        ) from exc
    if dialect == "postgresql" and "@" in (parsed.database or ""):
        raise ConfigError(
            f"database {shown_address(url)!r} has more than one @: percent-encode those of the password, as %40"
        )
    if dialect not in ("sqlite", "postgresql"):
        raise ConfigError(
            f"database {shown_address(url)!r}: {dialect} is not supported; use sqlite or postgresql+psycopg"
        )
    try:
        return Store(pool_of(parsed))
    except ImportError as exc:
        raise ConfigError(
            f"database {shown_address(url)!r} needs a driver that is not installed ({exc.name}): "
            "run pip install 'opmon[postgresql]' and write postgresql+psycopg://"
        ) from exc


def require_answer(uri: str, seconds: int) -> None:
    """An error of the driver's where the SQL server at ``uri``, anybody's, does not answer in time."""
    timeout = {"connect_timeout": seconds} if uri.startswith(("postgresql", "mysql")) else {}
    engine = sa.create_engine(uri, connect_args=timeout)
    try:
        engine.connect().close()
    finally:
        engine.dispose()

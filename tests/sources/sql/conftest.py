from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.sources.sql import settled
from opmon.sources.sql.sql import Sql
from opmon.types import Slice

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Production:
    """A database that serving code writes its requests to."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.engine = sa.create_engine(address)

    @property
    def is_postgresql(self) -> bool:
        return self.engine.dialect.name == "postgresql"

    def run(self, statement: str, *rows: Mapping[str, Any]) -> None:
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement), list(rows) or None)

    def requests(self, count: int = 30, key: str = "PRIMARY KEY", alike: int = 3) -> list[int]:
        """A table ``requests`` of rows of which each ``alike`` have the same time."""
        number = f"SERIAL {key}" if self.is_postgresql else f"INTEGER {key}"
        time = "TIMESTAMPTZ" if self.is_postgresql else "TIMESTAMP"
        self.run(f"CREATE TABLE requests (id {number}, at {time}, amount NUMERIC, country TEXT)")
        self.add(range(1, count + 1), alike)
        return list(range(1, count + 1))

    def add(self, ids: Sequence[int], alike: int = 1) -> None:
        rows = [{"id": k, "at": self.at(k // alike), "amount": k / 4, "country": f"c{k}"} for k in ids]
        if rows:
            self.run("INSERT INTO requests VALUES (:id, :at, :amount, :country)", *rows)

    def at(self, seconds: float) -> Any:
        moment = START + timedelta(seconds=seconds)
        return moment if self.is_postgresql else moment.strftime("%Y-%m-%d %H:%M:%S.%f")

    def source(self, **options: Any) -> Sql:
        if "query" not in options:
            options.setdefault("table", "requests")
        return Sql(**{"database": self.address, "cursor": "at", **options})


@pytest.fixture
def production(empty_database: str) -> Iterator[Production]:
    made = Production(empty_database)
    yield made
    made.engine.dispose()


@pytest.fixture
def on_postgres(postgres: Any) -> Iterator[Production]:
    made = Production(postgres())
    yield made
    made.engine.dispose()


@pytest.fixture
def on_sqlite(tmp_path: Any) -> Iterator[Production]:
    made = Production(f"sqlite:///{tmp_path / 'log.db'}")
    yield made
    made.engine.dispose()


@pytest.fixture
def clock_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the database's clock, in seconds after START."""

    def at(seconds: float) -> None:
        monkeypatch.setattr(settled.Look, "now", lambda look: START + timedelta(seconds=seconds))

    return at


def column(source: Sql, slices: Sequence[Slice], name: str = "id") -> list[Any]:
    return [value for batch in source.read(slices) for value in batch.rows[name].to_pylist()]

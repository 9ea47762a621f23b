"""How fast the sources ``sql`` and ``delta`` read: one million rows of 20 columns beside what they stand on.

::

    python tests/benchmarks/table_speed.py             # sqlite postgresql delta; --rows makes it smaller

The databases are held against SQLAlchemy's own fetch of all rows as Python objects, which makes no columns of them;
Delta against ``DeltaTable.to_pyarrow_dataset``. The least of several runs in turn of each counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from opmon.abc import Source
from opmon.sources.delta.delta import Delta
from opmon.sources.sql.sql import Sql
from tests.databases import postgres_server

NUMBERS = [f"x{k}" for k in range(12)]
WHOLE = [f"k{k}" for k in range(5)]


def seconds(work: Callable[[], int]) -> tuple[float, int]:
    begin = time.perf_counter()
    rows = work()
    return time.perf_counter() - begin, rows


def read(source: Source) -> int:
    return sum(batch.rows.num_rows for batch in source.read(source.pending({})))


def compare(name: str, rows: int, runs: int, plain: Callable[[], int], source: Source) -> None:
    pairs = []
    for _ in range(runs):
        (beside, found), (own, seen) = seconds(plain), seconds(lambda: read(source))
        assert found == seen == rows, (found, seen)
        pairs.append((beside, own))
    beside, own = (min(times) for times in zip(*pairs, strict=True))
    print(
        f"{name:10} {rows:,} rows x 20: {own:.2f} s, plain fetch {beside:.2f} s, ratio {own / beside:.2f}", flush=True
    )


def fill(address: str, rows: int) -> None:
    engine = sa.create_engine(address)
    kinds = [*(f"{name} DOUBLE PRECISION" for name in NUMBERS), *(f"{name} INTEGER" for name in WHOLE)]
    columns = ", ".join(kinds)
    postgresql = engine.dialect.name == "postgresql"
    time_type = "TIMESTAMPTZ" if postgresql else "TIMESTAMP"
    numbers = ", ".join(f"n * {k}.25 + 0.125" for k in range(len(NUMBERS)))
    whole = ", ".join(f"n % {k + 10}" for k in range(len(WHOLE)))
    if postgresql:
        at, series = "timestamptz '2026-01-01' + n * interval '1 second'", "generate_series(1, :rows) AS s(n)"
    else:
        at = "datetime('2026-01-01', n || ' seconds')"
        series = "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < :rows) SELECT n FROM s)"
    with engine.begin() as connection:
        connection.execute(
            sa.text(f"CREATE TABLE requests (id INTEGER PRIMARY KEY, at {time_type}, country TEXT, {columns})")
        )
        connection.execute(
            sa.text(f"INSERT INTO requests SELECT n, {at}, 'country ' || (n % 7), {numbers}, {whole} FROM {series}"),
            {"rows": rows},
        )
        connection.execute(sa.text("CREATE INDEX by_time ON requests (at, id)"))
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(sa.text("VACUUM ANALYZE requests" if postgresql else "ANALYZE"))
    engine.dispose()


def fetch(address: str) -> int:
    """All rows as Python objects, by a cursor that streams them."""
    engine = sa.create_engine(address)
    try:
        with engine.connect() as connection:
            streaming = connection.execution_options(stream_results=True, max_row_buffer=1)
            result = streaming.execute(sa.text("SELECT * FROM requests ORDER BY at, id"))
            return sum(len(rows) for rows in iter(lambda: result.fetchmany(20_000), []))
    finally:
        engine.dispose()


def database(name: str, address: str, rows: int, runs: int) -> None:
    fill(address, rows)
    source = Sql(database=address, table="requests", cursor="at")
    compare(name, rows, runs, lambda: fetch(address), source)


def sqlite(folder: Path, rows: int, runs: int) -> None:
    database("sqlite", f"sqlite:///{folder / 'log.db'}", rows, runs)


def postgresql(folder: Path, rows: int, runs: int) -> None:
    with postgres_server(folder) as server:
        database("postgresql", server.new(), rows, runs)


def delta(folder: Path, rows: int, runs: int) -> None:
    from deltalake import DeltaTable, write_deltalake

    for begin in range(0, rows, 100_000):
        count = min(100_000, rows - begin)
        rng = np.random.default_rng(begin)
        columns: dict[str, object] = {name: rng.normal(size=count) for name in NUMBERS}
        columns |= {name: rng.integers(0, 1000, count) for name in WHOLE}
        columns |= {
            "id": np.arange(begin, begin + count),
            "at": np.arange(count),
            "country": [f"c{k % 7}" for k in range(count)],
        }
        write_deltalake(str(folder / "t"), pa.table(columns), mode="append")

    def plain() -> int:
        return sum(batch.num_rows for batch in DeltaTable(str(folder / "t")).to_pyarrow_dataset().to_batches())

    compare("delta", rows, runs, plain, Delta(str(folder / "t")))


KINDS = {"sqlite": sqlite, "postgresql": postgresql, "delta": delta}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    given = parser.parse_args()
    for kind in given.kinds:
        with tempfile.TemporaryDirectory() as place:
            KINDS[kind](Path(place), given.rows, given.runs)


if __name__ == "__main__":
    main()

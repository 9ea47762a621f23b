"""``opmon init --from`` takes whatever sources read: a store, a Delta table, a table of a database, an experiment."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
import yaml
from deltalake import write_deltalake

from opmon.cli import DONE
from opmon.config import load
from opmon.errors import InputError
from opmon.monitor import Monitor
from opmon.setup.log import look
from opmon.setup.source import keys_of
from opmon.stores import open_filesystem
from tests.cli.test_commands import opmon
from tests.conftest import Workbench, point_mlflow_at

NAMES = ["age", "income", "amount"]
ROWS = 120
BEGIN = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, mlflow_uri: str) -> Workbench:
    """A store with one model of three numbers."""
    import onnx
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    point_mlflow_at(mlflow_uri)
    values = np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32)
    model = LogisticRegression().fit(values, (values.sum(axis=1) > 0).astype(int))
    graph = to_onnx(model, values[:1], target_opset=17, options={"zipmap": False})
    bench = Workbench(tmp_path_factory.mktemp("shop"), mlflow_uri, "shop", "")
    bench.register(onnx.load_from_string(graph.SerializeToString()), "of_sources", NAMES)
    return bench


def rows() -> pa.Table:
    values = np.random.default_rng(2).normal(size=(ROWS, 3))
    columns: dict[str, Any] = {name: values[:, place] for place, name in enumerate(NAMES)}
    times = [BEGIN + dt.timedelta(seconds=k) for k in range(ROWS)]
    return pa.table({"key": [f"r{k}" for k in range(ROWS)], "logged_at": times, **columns})


def in_a_store(request: Any, folder: Path) -> tuple[str, dict[str, Any]]:
    url = request.getfixturevalue("bucket")
    filesystem, path = open_filesystem(url)
    pq.write_table(rows(), f"{path}/log/a.parquet", filesystem=filesystem)
    return f"{url}/log", {"path": f"{url}/log"}


def in_delta(request: Any, folder: Path) -> tuple[str, dict[str, Any]]:
    write_deltalake(str(folder / "lake"), rows())
    return str(folder / "lake"), {"type": "delta", "path": "lake"}


def in_a_table(request: Any, folder: Path, address: str) -> None:
    engine = sa.create_engine(address)
    kind = "TIMESTAMPTZ" if address.startswith("postgresql") else "TIMESTAMP"
    with engine.begin() as connection:
        numbers = ", ".join(f"{name} DOUBLE PRECISION" for name in NAMES)
        connection.execute(sa.text(f"CREATE TABLE requests (id INTEGER PRIMARY KEY, logged_at {kind}, {numbers})"))
        for number, row in enumerate(rows().to_pylist()):
            values = {"id": number, **{name: row[name] for name in (*NAMES, "logged_at")}}
            if address.startswith("sqlite"):
                values["logged_at"] = values["logged_at"].strftime("%Y-%m-%d %H:%M:%S.%f")
            named = ", ".join(f":{name}" for name in values)
            connection.execute(sa.text(f"INSERT INTO requests ({', '.join(values)}) VALUES ({named})"), values)
    engine.dispose()


def in_sqlite(request: Any, folder: Path) -> tuple[str, dict[str, Any]]:
    in_a_table(request, folder, f"sqlite:///{folder / 'log.db'}")
    cursor = ["logged_at", "id"]
    told = {"type": "sql", "database": "sqlite:///log.db", "table": "requests", "cursor": cursor}
    return f"sqlite:///{folder / 'log.db'}#requests", told


def in_postgresql(request: Any, folder: Path) -> tuple[str, dict[str, Any]]:
    address = request.getfixturevalue("postgres")()
    in_a_table(request, folder, address)
    request.getfixturevalue("monkeypatch").setenv("PRODUCTION_LOG", address.partition("://")[2])
    written = "postgresql+psycopg://${PRODUCTION_LOG}"
    told = {"type": "sql", "database": written, "table": "requests", "cursor": ["logged_at", "id"]}
    return f"{written}#requests", told


def in_mlflow(request: Any, folder: Path) -> tuple[str, dict[str, Any]]:
    server = mlflow.get_tracking_uri()
    client = mlflow.MlflowClient()
    experiment = client.create_experiment("production inputs", str(folder / "artifacts"))
    run = client.create_run(experiment)
    pq.write_table(rows(), folder / "inputs.parquet")
    client.log_artifact(run.info.run_id, str(folder / "inputs.parquet"), "inputs")
    client.set_terminated(run.info.run_id)
    told = {"type": "mlflow", "experiment": "production inputs", "tracking_uri": server}
    return "mlflow:production inputs", told


def as_keys(request: Any, folder: Path) -> tuple[str, dict[str, Any]]:
    (folder / "log").mkdir()
    pq.write_table(rows(), folder / "log" / "a.parquet")
    return "{path: log, since: 2026-01-01}", {"path": "log", "since": "2026-01-01"}


@pytest.mark.parametrize("made", [in_a_store, in_delta, in_sqlite, in_postgresql, in_mlflow, as_keys])
def test_a_monitor_of_any_source_is_ready_and_takes_its_rows(
    shop: Workbench, made: Callable[..., Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    point_mlflow_at(shop.tracking_uri)
    source, expected = made(request, tmp_path)
    path = tmp_path / "opmon.yaml"

    code, said, problem = opmon(
        "init", str(path), "--from", "models:/of_sources/1", "--source", source, "--tracking-uri", shop.tracking_uri
    )

    assert code == DONE, f"{said}\n{problem}"
    assert "ready" in said
    written = yaml.safe_load(path.read_text(encoding="utf-8"))["monitors"]["of_sources"]
    assert written["source"] == expected
    assert written["columns"]["timestamp"] == "logged_at"
    monitor = Monitor.from_settings(load(path), "of_sources")
    assert sum(piece.rows for piece in monitor.settings.reads.pending({})) == ROWS


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("postgresql+psycopg://reader:hunter2@db/log#requests", r"\$\{LOG_PASSWORD\}"),
        ("postgresql+psycopg://reader@db/log", "names no table"),
        ("{type: sql, table", "--source:1"),
        ("bogus://db/log#requests", "is not an address"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(source: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words) as refused:
        keys_of(source, tmp_path, "sqlite:///mlflow.db")
    assert "hunter2" not in str(refused.value)


def test_a_table_whose_order_nobody_knows_is_told(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'log.db'}")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE words (word TEXT, score REAL)"))
        connection.execute(sa.text("CREATE TABLE numbered (id INTEGER PRIMARY KEY, word TEXT)"))
    engine.dispose()
    with pytest.raises(InputError, match="in which order its rows came"):
        keys_of(f"sqlite:///{tmp_path / 'log.db'}#words", tmp_path, "")
    assert keys_of(f"sqlite:///{tmp_path / 'log.db'}#numbered", tmp_path, "")["cursor"] == ["id"]
    with pytest.raises(InputError, match=r"--source log\.db cannot be read: .*database"):
        look({"type": "sql", "path": "log.db"}, tmp_path)

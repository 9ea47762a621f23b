"""What tests share: real databases, one fresh one for each test."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import settings

from opmon import monitor, redaction, tokens
from opmon.store import _connections
from tests.compiled import sharing
from tests.databases import Postgres, postgres_server
from tests.made_once import copy_mlflow_store, made_once, new_mlflow_store, new_opmon_database
from tests.patience import LONGEST

settings.register_profile("opmon", deadline=None, derandomize=True)  # the same cases every time, however busy
settings.load_profile("opmon")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two cores, and pytest-xdist uses both
DEFAULT_TIMEOUT_CONFIG.read = DEFAULT_TIMEOUT_CONFIG.connect = LONGEST  # five seconds are nothing on a busy machine
monitor.MLFLOW_SECONDS = LONGEST
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", f"{LONGEST / 3:.0f}")  # opmon waits three times as long
sys.dont_write_bytecode = False  # each worker and hundreds of processes would compile all of opmon for themselves
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
_connections._sqlite = sharing(_connections._sqlite)
_connections._postgresql = sharing(_connections._postgresql)
tokens.LOG2_COST = 4  # what is checked is who is let in; tests/test_tokens.py checks what guessing costs


@sa.event.listens_for(sa.pool.Pool, "connect")
def _(connection: object, record: object) -> None:
    """MLflow's stores need not outlive the machine; opmon says itself, after this, how its own are written."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Nothing is thrown away while thousands of tests are found: looking for it took a third of the time."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """What was found stays, and is never looked through again."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """The process ends: pytest would look through all that is there five times for what was never awaited."""
    gc.freeze()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two for each core of a small machine: tests wait for servers, for processes and for disks."""
    cores = os.cpu_count() or 1
    return max(cores, min(2 * cores, 4))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgres]:
    """A PostgreSQL server of this test process's own.

    Its folder is none of pytest's: run by root, the server is another user's, and each run of pytest that begins on the
    machine closes the folder of all runs to others, which ended the server in the middle of a test.
    """
    with postgres_server(Path(tempfile.mkdtemp(prefix="opmon-postgres-"))) as server:
        server.hurry()
        yield server


@pytest.fixture(scope="session")
def postgres(postgresql: Postgres) -> Callable[[], str]:
    """Makes empty databases on that server."""
    return postgresql.new


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of a server of this test process's own that speaks S3."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty bucket, which the environment has the address and the credentials of."""
    from opmon.stores import open_filesystem

    told = {"ENDPOINT_URL": s3_server, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1"}
    for name, value in {**told, "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    url = f"s3://bucket-{next(_BUCKETS)}"
    httpx.put(f"{s3_server}/{url.removeprefix('s3://')}").raise_for_status()
    filesystem, _ = open_filesystem(url)
    assert filesystem.type_name == "s3"
    return url


_BUCKETS = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a database of each kind, with its tables: for what it decides (locks, SQL, what is stored)."""
    if request.param == "sqlite":
        yield new_opmon_database(tmp_path / "opmon.db")
        return
    monkeypatch.setitem(_connections._SESSION, "idle_in_transaction_session_timeout", f"{LONGEST:.0f}s")
    server: Postgres = request.getfixturevalue("postgresql")
    made = server.with_tables()
    yield made
    server.drop(made)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database of each kind without tables: for how they are made."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'opmon.db'}"
    return str(request.getfixturevalue("postgresql").new())


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of a SQLite database with its tables: for what is the same on every database."""
    return new_opmon_database(tmp_path / "opmon.db")


@pytest.fixture(autouse=True)
def no_secret_is_known_of_another_test() -> None:
    redaction._known.clear()
    redaction._known_pattern = None


@pytest.fixture(autouse=True)
def no_connection_is_left() -> Iterator[None]:
    """Each test has databases of its own; their pools would together be more than a server gives, and their engines
    more than a test should have to look through."""
    before = set(_connections._pools)
    yield
    for key, engine in list(_connections._pools.items()):
        engine.dispose()
        if key not in before:
            del _connections._pools[key]


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


CLASSES = 10


class Workbench:
    """A small real world: digits, a registered model, a production log that grows, an annotator who knows the truth."""

    def __init__(self, folder: Path, tracking_uri: str, name: str, model: str) -> None:
        from sklearn.datasets import load_digits

        self.folder, self.tracking_uri, self.name, self.model = folder, tracking_uri, name, model
        self.is_alone = False
        self.images, self.targets = load_digits(return_X_y=True)
        self.truth: dict[str, str] = {}
        self.windows = 0
        (folder / "production").mkdir(parents=True, exist_ok=True)

    def sibling(self, folder: Path) -> Workbench:
        """The same world once more, with an MLflow of its own: a monitor there makes the very same choices."""
        folder.mkdir()
        world = Workbench(folder, new_digits(folder), self.name, self.model)
        world.is_alone = True
        return world

    def register(self, model: object, name: str, columns: Sequence[str] = ()) -> None:
        """Watch another model, an ONNX one, registered under a name of its own; ``columns`` are its signature."""
        import mlflow
        from mlflow.models import ModelSignature
        from mlflow.types import ColSpec, Schema

        signature = ModelSignature(Schema([ColSpec("double", column) for column in columns])) if columns else None
        point_mlflow_at(self.tracking_uri)
        experiment = mlflow.MlflowClient().get_experiment_by_name("training").experiment_id
        with mlflow.start_run(experiment_id=experiment):
            logged = mlflow.onnx.log_model(
                model, name="model", registered_model_name=name, pip_requirements=["onnxruntime"], signature=signature
            )
        self.model = f"models:/{name}/{logged.registered_model_version}"

    def new_version(self) -> str:
        """Train and register ``digits`` once more, behind the alias; gives the version."""
        assert self.is_alone, "other tests of this process use this MLflow: take a sibling()"
        return register_digits(self.tracking_uri)

    def register_again(self) -> None:
        """The model as version 2 of ``digits``, too, made once; the alias stays where it is."""
        import mlflow

        client = mlflow.MlflowClient(self.tracking_uri)
        if len(client.search_model_versions("name='digits'")) < 2:
            client.create_model_version("digits", client.get_model_version("digits", "1").source)

    def with_network(self) -> Workbench:
        """Watch a network with a hidden layer of 16 neurons."""
        import onnx
        from sklearn.neural_network import MLPClassifier

        from opmon.scoring.conversion.converting import convert
        from opmon.types import Signature

        images, targets = self.images[:900].astype("float32"), self.targets[:900]
        fitted = MLPClassifier((16,), max_iter=60, random_state=0).fit(images, targets)
        signature = Signature(tensors=((None, "float32", (-1, 64)),))
        self.register(onnx.load_from_string(convert(fitted, signature)), "layered")
        return self

    def write_window(self, size: int = 200, seed: int = 0, **columns: object) -> Path:
        """Another Parquet file of production inputs, whole at once."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.windows += 1
        rng = np.random.default_rng([seed, self.windows])
        chosen = rng.integers(0, len(self.targets), size)
        ids = [f"w{self.windows}-{k}" for k in range(size)]
        self.truth |= dict(zip(ids, map(str, self.targets[chosen].tolist()), strict=True))
        pixels = pa.FixedSizeListArray.from_arrays(pa.array(self.images[chosen].astype(np.float32).ravel()), 64)
        start = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=self.windows)
        table = pa.table(
            {"input_id": ids, "at": [start + timedelta(seconds=k) for k in range(size)], "pixels": pixels, **columns}
        )
        path = self.folder / "production" / f"window-{self.windows:03}.parquet"
        pq.write_table(table, path.with_suffix(".tmp"))
        return path.with_suffix(".tmp").rename(path)

    def configuration(self, database: str, **changes: object) -> dict[str, object]:
        """A configuration as opmon.yaml would hold it."""
        monitor: dict[str, object] = {
            "model": self.model,
            "inputs": {"tensor": "pixels"},
            "source": {"path": "production"},
            "columns": {"id": "input_id", "timestamp": "at"},
            "round": {"min_inputs": 200, "max_inputs": 200, "max_age": "3650d"},
            "sampler": {"type": "sups", "budget": 40},
            "rules": [{"type": "accuracy_below", "threshold": 0.9, "name": "floor"}],
            "actions": [{"type": "registry_tag"}],
            "drift": {"enabled": False},
        }
        return {
            "mlflow": {"tracking_uri": self.tracking_uri},
            "database": database,
            "monitors": {self.name: monitor | changes},
        }

    def write_yaml(self, database: str, **changes: object) -> Path:
        import yaml

        path = self.folder / "opmon.yaml"
        path.write_text(yaml.safe_dump(self.configuration(database, **changes)))
        return path

    def monitor(self, database: str, clock: Callable[[], datetime] | None = None, **changes: object):  # type: ignore[no-untyped-def]
        from opmon.config import Settings
        from opmon.monitor import Monitor

        path = Path(database.removeprefix("sqlite:///"))
        if database.startswith("sqlite:///") and not path.exists():  # the tables are not made anew for each test
            new_opmon_database(path)
        settings = Settings.from_mapping(self.configuration(database, **changes), self.folder)
        options = {} if clock is None else {"clock": clock}
        return Monitor.from_settings(settings, self.name, **options)

    def live(self, monitor, rounds: int, **answering: float) -> None:  # type: ignore[no-untyped-def]
        """So many rounds, each with a window of its own, from the first input to the verdict."""
        for _ in range(rounds):
            self.write_window()
            assert monitor.advance().problems == []
            self.answer(monitor, **answering)
            assert monitor.advance().closed == 1

    def answer(  # type: ignore[no-untyped-def]
        self, monitor, wrong: float = 0.0, skip: float = 0.0, limit: int | None = None, only: int | None = None
    ) -> int:
        """Answer open tasks, or those of one round ``only``, as the annotator ``ann`` would; always in the same way."""
        import zlib

        from opmon.store import queue
        from opmon.types import Label

        with monitor.store.read() as connection:
            tasks = queue.open_tasks(connection, self.name, limit)
        given = []
        for task in tasks:
            if only not in (None, task.round):
                continue
            dice = zlib.crc32(task.input_id.encode()) / 2**32
            truth: str | None = self.truth[task.input_id]
            if dice < wrong:
                truth = str((int(truth or 0) + 1) % CLASSES)
            elif dice > 1 - skip:
                truth = None
            given.append(Label(task.id, "ann", truth, datetime(2026, 3, 2, tzinfo=UTC)))
        with monitor.store.write() as connection:
            return queue.record(connection, given, datetime.now(UTC)).new

    def true_accuracy(self, monitor, number: int) -> float:  # type: ignore[no-untyped-def]
        """The accuracy over all inputs of a round, from its frame and the known truth."""
        import pyarrow.parquet as pq

        from opmon.store import rounds

        with monitor.store.read() as connection:
            round_ = rounds.get(connection, self.name, number)
        frame = pq.read_table(monitor.registry.download(round_.run_id, "frame.parquet", self.folder / "frames"))
        pairs = zip(frame["id"].to_pylist(), frame["prediction"].to_pylist(), strict=True)
        return sum(self.truth[key] == said for key, said in pairs) / frame.num_rows


@pytest.fixture(scope="session")
def mlflow_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tracking store with the registered model ``digits``: version 1, alias ``champion``."""
    return new_digits(tmp_path_factory.mktemp("mlflow"))


def new_digits(folder: Path) -> str:
    """A new tracking store in the folder, with version 1 of ``digits`` behind the alias ``champion``."""
    import mlflow

    made = made_once("digits", lambda where: register_digits(new_mlflow_store(where)), Path(__file__))
    uri = copy_mlflow_store(made, folder)
    point_mlflow_at(uri)
    mlflow.set_experiment("training")
    return uri


def point_mlflow_at(uri: str) -> None:
    """MLflow's own functions know one address for the whole process; another test may have set it."""
    import mlflow

    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri("")  # it follows the tracking address


def register_digits(uri: str, share: float = 0.5) -> str:
    """Train a small model on a share of digits and register it; gives its version."""
    import mlflow
    import skl2onnx
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    images, targets = load_digits(return_X_y=True)
    size = int(len(targets) * share)
    model = LogisticRegression(max_iter=200).fit(images[:size], targets[:size])
    kind = skl2onnx.common.data_types.FloatTensorType([None, 64])
    onnx_model = skl2onnx.to_onnx(model, initial_types=[("pixels", kind)], options={"zipmap": False}, target_opset=17)
    client = mlflow.MlflowClient(uri, registry_uri=uri)
    point_mlflow_at(uri)
    location = str(Path(uri.removeprefix("sqlite:///")).parent / "artifacts") if uri.startswith("sqlite") else None
    if client.get_experiment_by_name("training") is None:
        client.create_experiment("training", artifact_location=location)
    mlflow.set_experiment("training")
    with mlflow.start_run():
        info = mlflow.onnx.log_model(onnx_model, name="model", pip_requirements=["onnxruntime"])
    version = mlflow.register_model(info.model_uri, "digits").version
    client.set_registered_model_alias("digits", "champion", version)
    return str(version)


@pytest.fixture
def workbench(tmp_path: Path, mlflow_uri: str, request: pytest.FixtureRequest) -> Workbench:
    import re

    name = re.sub(r"[^A-Za-z0-9_]+", "-", request.node.name).strip("-")[:80]
    point_mlflow_at(mlflow_uri)
    return Workbench(tmp_path, mlflow_uri, name, "models:/digits@champion")


@pytest.fixture(autouse=True)
def _log_levels() -> Iterator[None]:
    """The command line sets how much is logged in its process; a test's process lives on."""
    import logging

    loggers = [logging.getLogger(name) for name in ("opmon", "opmon.stages")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from opmon.registry import MlflowRegistry
from tests.made_once import copy_mlflow_store, made_once, new_mlflow_store


def find_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


NO_JOBS = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
"""A server evaluates nothing for itself: that starts eight processes more, and four times the work."""


@dataclass
class Server:
    """A real ``mlflow server`` on SQLite, in a process group of its own."""

    process: subprocess.Popen[bytes]
    uri: str

    @classmethod
    def start(cls, folder: Path, *, again: bool = False) -> Server:
        """In ``folder``, on a store of its own; ``again``: on the one that an earlier server left there."""
        store = f"sqlite:///{folder / 'mlflow.db'}" if again else new_mlflow_store(folder)
        port = find_port()
        command = [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--workers",
            "1",
        ]
        command += ["--backend-store-uri", store]
        command += ["--artifacts-destination", str(folder / "artifacts")]
        environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", **NO_JOBS}
        with (folder / "server.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        server = cls(process, f"http://127.0.0.1:{port}")
        server._wait(folder / "server.log")
        return server

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # killed already
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _wait(self, log: Path) -> None:
        for _ in range(2400):  # importing it takes a minute where the machine is busy
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=1):
                    return
            except OSError:
                assert self.process.poll() is None, log.read_text()
                time.sleep(0.1)
        raise AssertionError(f"the server does not answer:\n{log.read_text()}")


@pytest.fixture
def free_port() -> int:
    """A port on which nothing listens."""
    return find_port()


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Server]]:
    """Starts servers that have the models of :func:`register`."""
    servers: list[Server] = []

    def start() -> Server:
        server = Server.start(tmp_path_factory.mktemp("server"))
        servers.append(server)
        register(server.uri)
        return server

    yield start
    for server in servers:
        server.kill()


@pytest.fixture(scope="session")
def server(start_server: Callable[[], Server]) -> Server:
    return start_server()


@pytest.fixture(scope="session")
def sqlite_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("sqlite")
    made = made_once("registry", lambda where: register(new_mlflow_store(where), where / "artifacts"), Path(__file__))
    return copy_mlflow_store(made, folder)


@pytest.fixture(params=["sqlite", "server"])
def uri(request: pytest.FixtureRequest) -> str:
    """Where MLflow is: straight to its database, and through its server."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_uri"))
    return str(request.getfixturevalue("server").uri)


@pytest.fixture
def registry(uri: str) -> MlflowRegistry:
    return MlflowRegistry(uri)


@pytest.fixture(scope="session")
def model() -> Any:
    images, targets = load_digits(return_X_y=True)
    return LogisticRegression(max_iter=30).fit(images[:500], targets[:500])


def register(uri: str, artifacts: Path | None = None) -> None:
    """Model ``digits``: version 1 is scikit-learn's, 2 and 3 are ONNX; aliases ``first`` and ``champion``."""
    import mlflow

    images, targets = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=30).fit(images[:500], targets[:500])
    converted = to_onnx(model, images[:1].astype(np.float32), options={"zipmap": False})
    mlflow.set_tracking_uri(uri)
    client = mlflow.MlflowClient(uri)
    if client.get_experiment_by_name("training") is None:
        client.create_experiment("training", artifact_location=str(artifacts) if artifacts else None)
    mlflow.set_experiment("training")
    signature = mlflow.models.infer_signature(images[:5], targets[:5])
    with mlflow.start_run():
        first = mlflow.sklearn.log_model(model, name="sklearn", signature=signature, pip_requirements=["scikit-learn"])
        second = mlflow.onnx.log_model(converted, name="onnx", pip_requirements=["onnxruntime"])
        third = mlflow.onnx.log_model(
            converted, name="external", save_as_external_data=True, pip_requirements=["onnxruntime"]
        )
    for info in (first, second, third):
        mlflow.register_model(info.model_uri, "digits")
    client.set_registered_model_alias("digits", "first", "1")
    client.set_registered_model_alias("digits", "champion", "2")

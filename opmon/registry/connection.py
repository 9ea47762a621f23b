"""MLflow's client: quiet, without telemetry, and with a time limit on every call."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.errors import ConfigError
from opmon.redaction import redacted
from opmon.registry._calls import Bounded, Calls
from opmon.registry.translation import translated

if TYPE_CHECKING:
    from mlflow.store.artifact.artifact_repo import ArtifactRepository

_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0.5",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""What opmon asks of MLflow where the environment says nothing: its own retries take minutes."""
_ALWAYS = {"MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"}
"""What opmon asks of MLflow whatever the environment says: it prints the address of each run that ends, with the user's
password, in between what opmon prints."""

_lock = threading.Lock()


def prepare_environment() -> None:
    """Set what MLflow reads; what the user has set stays, but for what would show a password."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    os.environ.update(_ALWAYS)
    if "DO_NOT_TRACK" not in os.environ:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


class Connection:
    """MLflow's client for one tracking server and registry, made when it is first used."""

    def __init__(self, tracking_uri: str | None, registry_uri: str | None) -> None:
        self._tracking_uri = tracking_uri
        self._registry_uri = registry_uri
        self.calls = Calls(lambda: self.where)
        self.places: dict[str, str] = {}
        """Where the files of runs are, as far as that was met: MLflow's client would ask once more."""

    @cached_property
    def tracking_uri(self) -> str:
        prepare_environment()
        if self._tracking_uri:
            return self._tracking_uri
        import mlflow

        return str(mlflow.get_tracking_uri())

    @property
    def where(self) -> str:
        """The address, without credentials."""
        return redacted(self.tracking_uri)

    @cached_property
    def client(self) -> Bounded:
        """``mlflow.MlflowClient``; never the module's own functions, which share one global state."""
        with _lock, translated("connecting", self.tracking_uri):
            _quiet_logging()
            for uri in (self.tracking_uri, self._registry_uri):
                if uri is not None:
                    _require_database(uri)
            from mlflow import MlflowClient

            registry_uri = self._registry_uri or self.tracking_uri
            return Bounded(MlflowClient(tracking_uri=self.tracking_uri, registry_uri=registry_uri), self.calls)

    @cached_property
    def models(self) -> Bounded:
        """What keeps registered models: behind the client's own functions, which ask before each whether it is a
        prompt.
        """
        _ = self.client  # it prepares the environment, and fails at once where nobody answers
        with translated("opening the registry", self.tracking_uri):
            from mlflow.tracking._model_registry.client import ModelRegistryClient

            return Bounded(ModelRegistryClient(self._registry_uri or self.tracking_uri, self.tracking_uri), self.calls)

    @cached_property
    def store(self) -> Bounded:
        """What keeps traces and review queues: behind the client's own functions for them, which share a global state.

        Raises ConfigError where this MLflow has no review queues."""
        _ = self.client  # it prepares the environment, and fails at once where nobody answers
        with translated("opening the store of traces", self.tracking_uri):
            from mlflow.tracing.client import TracingClient

            store = TracingClient(tracking_uri=self.tracking_uri).store
        if not callable(getattr(store, "create_review_queue", None)):
            raise ConfigError("this MLflow has no review queues: install mlflow 3.14 or later")
        return Bounded(store, self.calls)

    def upload(self, run_id: str, path: Path, folder: str | None) -> None:
        """Log one file to a run."""
        client, size, place = self.client, path.stat().st_size, self.places.get(run_id, "dbfs:")

        def send() -> None:
            from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

            if place.startswith("dbfs:"):  # or unknown: the client knows what to do
                client.unbounded.log_artifact(run_id, str(path), folder)
            else:
                get_artifact_repository(place, tracking_uri=self.tracking_uri).log_artifact(str(path), folder)

        self.calls.upload(send, size)

    def download(self, run_id: str, artifact_path: str, into: Path) -> Path:
        """Copy an artifact of a run, file or folder, below ``into``."""
        client = self.client
        fetch = partial(client.unbounded.download_artifacts, run_id, artifact_path, str(into))
        return Path(self.calls.download(fetch, lambda: _size(into)))

    def fetch(self, uri: str, artifact_path: str, into: Path) -> Path:
        """Copy what is behind the address of artifacts, or a part of it, below ``into``."""

        def fetch() -> str:
            return str(self._artifacts(uri).download_artifacts(artifact_path, str(into)))

        return Path(self.calls.download(fetch, lambda: _size(into)))

    def remove(self, run_id: str, artifact_path: str) -> None:
        """Remove a file of a run from the store of artifacts."""
        uri = self.client.get_run(run_id).info.artifact_uri
        self.calls.ask(lambda: self._artifacts(uri).delete_artifacts(artifact_path))

    def _artifacts(self, uri: str) -> ArtifactRepository:
        """What reads and writes the artifacts at an address."""
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        return get_artifact_repository(
            uri, tracking_uri=self.tracking_uri, registry_uri=self._registry_uri or self.tracking_uri
        )


def _size(folder: Path) -> int:
    """How many bytes there are in a folder that somebody else fills."""
    sizes = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            sizes += path.stat().st_size
    return sizes


def _quiet_logging() -> None:
    """MLflow and Alembic tell about each migration and each run; opmon tells what matters itself."""
    import mlflow  # noqa: F401  sets its own log level when it is imported

    if "MLFLOW_LOGGING_LEVEL" not in os.environ:
        logging.getLogger("mlflow").setLevel(logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _require_database(uri: str) -> None:
    """Fail at once where an SQL server is not there: MLflow would try for two minutes."""
    if not uri.startswith(("postgresql", "mysql", "mssql")):
        return
    from opmon.store.engine import require_answer

    require_answer(uri, seconds=10)

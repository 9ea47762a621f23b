"""Making MLflow's client: quiet, without telemetry, and with retries that end."""

from __future__ import annotations

import logging
import os
import threading
from functools import cached_property
from typing import Any

from opmon.registry.translation import redacted, translated

_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0.5",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""What opmon asks of MLflow where the environment says nothing: its own retries take minutes."""

_lock = threading.Lock()


def prepare_environment() -> None:
    """Set what MLflow reads when it is imported; what the user has set stays."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    if "DO_NOT_TRACK" not in os.environ:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


class Connection:
    """MLflow's client for one tracking server and registry, made when it is first used."""

    def __init__(self, tracking_uri: str | None, registry_uri: str | None) -> None:
        self._tracking_uri = tracking_uri
        self._registry_uri = registry_uri

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
    def client(self) -> Any:
        """``mlflow.MlflowClient``; never the module's own functions, which share one global state."""
        with _lock, translated("connecting", self.tracking_uri):
            _quiet_logging()
            for uri in (self.tracking_uri, self._registry_uri):
                if uri is not None:
                    _require_database(uri)
            from mlflow import MlflowClient

            return MlflowClient(tracking_uri=self.tracking_uri, registry_uri=self._registry_uri or self.tracking_uri)

    def artifacts(self, uri: str) -> Any:
        """The artifact repository behind an address."""
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        return get_artifact_repository(
            uri, tracking_uri=self.tracking_uri, registry_uri=self._registry_uri or self.tracking_uri
        )


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
    import sqlalchemy

    timeout = {"connect_timeout": 10} if uri.startswith(("postgresql", "mysql")) else {}
    engine = sqlalchemy.create_engine(uri, connect_args=timeout)
    try:
        engine.connect().close()
    finally:
        engine.dispose()

"""MLflow Projects, started in a process of their own and not waited for."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from opmon.ceiling import lift
from opmon.errors import UnavailableError
from opmon.printed import last_words
from opmon.private import umask_of_user
from opmon.registry.connection import Connection
from opmon.registry.translation import translated

STARTED_TAG = "opmon.started"
GRACE = 15.0
"""Seconds in which a project that cannot begin is noticed."""


def run(
    connection: Connection,
    run_id: str,
    uri: str,
    entry_point: str,
    parameters: Mapping[str, str],
    version: str | None,
    *,
    backend: str,
    env_manager: str,
) -> str:
    """Start the project into the run ``run_id``, unless that was done before."""
    with translated(f"starting {uri}", connection.where):
        if STARTED_TAG in connection.client.get_run(run_id).data.tags:
            return run_id
        argv = [sys.executable, "-m", "mlflow", "run", "--entry-point", entry_point, "--run-id", run_id]
        argv += ["--env-manager", env_manager, "--backend", backend]
        argv += ["--version", version] if version else []
        for name, value in parameters.items():
            argv += ["-P", f"{name}={value}"]
        _start([*argv, "--", uri], connection, uri)
        connection.client.set_tag(run_id, STARTED_TAG, "true")
    return run_id


def _start(argv: list[str], connection: Connection, uri: str) -> None:
    """The process lives on; one that fails at once is an error with what it said."""
    environment = os.environ | {"MLFLOW_TRACKING_URI": connection.tracking_uri}
    with tempfile.TemporaryFile() as told:
        process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - mlflow itself, without a shell
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            start_new_session=True,
            umask=umask_of_user(),
        )
        lift(process.pid)
        try:
            code = process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return
        if code != 0:
            raise UnavailableError(f"the MLflow Project {uri} ended with exit code {code}: {last_words(told)}")

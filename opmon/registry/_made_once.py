"""A run that is made by a single request.

MLflow's client sends a request again, unseen, where the line was cut or a server before MLflow was busy; the first one
may have arrived all the same. Where only one was sent, and was answered, there is one run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from opmon.registry.connection import Connection
from opmon.registry.translation import first_line, is_answer

if TYPE_CHECKING:
    from mlflow import MlflowClient

log = logging.getLogger(__name__)

_CREATE = "/api/2.0/mlflow/runs/create"


def make_once(connection: Connection, experiment_id: str, name: str, tags: Mapping[str, str]) -> str | None:
    """The id of the run; None where nobody knows whether it was made, or MLflow cannot be asked only once."""
    client = connection.client
    try:
        made = connection.calls.ask(_made, client.unbounded, experiment_id, name, tags)
    except Exception as exc:
        if is_answer(exc):
            raise
        log.debug("whether the run %r was made is not known: %s", name, first_line(exc))
        return None
    if made is None:
        return None
    run_id, connection.places[run_id] = made
    return run_id


def _made(client: MlflowClient, experiment_id: str, name: str, tags: Mapping[str, str]) -> tuple[str, str] | None:
    """The run's id, and where its files are."""
    from mlflow.utils.rest_utils import http_request, verify_rest_response
    from mlflow.utils.time import get_current_time_millis

    server = getattr(client._tracking_client.store, "get_host_creds", None)
    if server is None:  # a database
        info = client.create_run(experiment_id, tags=dict(tags), run_name=name).info
        return str(info.run_id), str(info.artifact_uri)
    credentials = server()
    if credentials.use_databricks_sdk:  # which repeats requests by itself
        return None
    asked = {
        "experiment_id": experiment_id,
        "run_name": name,
        "user_id": "unknown",
        "start_time": get_current_time_millis(),
        "tags": [{"key": key, "value": value} for key, value in tags.items()],
    }
    response = http_request(credentials, _CREATE, "POST", max_retries=0, json=asked)
    answer = verify_rest_response(response, _CREATE).json()["run"]["info"]
    return str(answer["run_id"]), str(answer["artifact_uri"])

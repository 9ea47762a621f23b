"""Runs that are found by a key before they are made.

MLflow has no unique key, and its client makes a run again when the answer was lost. So after a run was made, whatever
became of the answer, the runs with the key are looked up: one is marked as the one that is kept, for ever after, and
the others are removed. One that a request makes late is removed when its key is next asked for, or its run finished.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from opmon.errors import InputError, NotFoundError, OpmonError
from opmon.registry.connection import Connection
from opmon.registry.translation import is_answer, translated

if TYPE_CHECKING:
    from mlflow.entities import Run

log = logging.getLogger(__name__)

KEY_TAG, KEPT_TAG, DOUBLE_TAG = "opmon.key", "opmon.kept", "opmon.double_of"


def find_or_make(connection: Connection, experiment_id: str, key: str, name: str, tags: Mapping[str, str]) -> str:
    """The id of the run with this key."""
    if not key or "'" in key or "\\" in key:
        raise InputError(f"a run's key is not empty and has no quote or backslash in it; got {key!r}")
    kept = keep_one(connection, experiment_id, key)
    if kept is not None:
        return kept
    lost: Exception | None = None
    try:
        connection.client.create_run(experiment_id, tags={**tags, KEY_TAG: key}, run_name=name)
    except Exception as exc:
        if is_answer(exc):
            raise
        lost = exc
    kept = keep_one(connection, experiment_id, key)
    if kept is None:
        raise lost or NotFoundError(f"the run {name!r} was made, and MLflow does not find it")
    return kept


def keep_one(connection: Connection, experiment_id: str, key: str) -> str | None:
    """The run with this key: the one that is marked, else the oldest, which is marked then. Others are removed."""
    found = connection.client.search_runs([experiment_id], f"tags.`{KEY_TAG}` = '{key}'", max_results=100)
    if not found:
        return None
    marked = [run for run in found if KEPT_TAG in run.data.tags]
    kept = min(marked or found, key=lambda run: (run.info.start_time, run.info.run_id))
    if not marked:
        connection.client.set_tag(kept.info.run_id, KEPT_TAG, "true")
    for run in found:
        if run.info.run_id != kept.info.run_id:
            _remove(connection, run, kept.info.run_id)
    return str(kept.info.run_id)


def _remove(connection: Connection, run: Run, kept: str) -> None:
    """A run made twice goes to MLflow's bin; one that something was logged to stays, and names the one kept."""
    run_id, client = run.info.run_id, connection.client
    try:
        with translated(f"removing run {run_id}, a double of {kept}", connection.where):
            if not run.data.metrics and not run.data.params:
                client.delete_run(run_id)
            else:
                client.set_tag(run_id, DOUBLE_TAG, kept)
                client.delete_tag(run_id, KEY_TAG)
    except OpmonError as exc:
        log.warning("%s", exc)

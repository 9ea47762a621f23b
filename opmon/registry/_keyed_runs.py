"""Runs that are found by a key before they are made.

MLflow has no unique key, and its client makes a run again when the answer was lost. So after a run was made, whatever
became of the answer, the runs with the key are looked up: one is kept, and the others are removed. The one that is kept
is marked for ever after with the first that is logged to it (:attr:`Kept.unmarked`). One that a request makes late is
removed when its key is next asked for, or its run finished.

A run that is new, as whoever asks says, is made by one request that is not repeated: where it is answered, there is one
run, and nothing is looked up. The first one of a process is looked for all the same: a database that was set back
begins rounds anew whose runs are there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opmon.errors import InputError, NotFoundError, OpmonError
from opmon.registry._made_once import make_once
from opmon.registry.connection import Connection
from opmon.registry.translation import is_answer, translated

if TYPE_CHECKING:
    from mlflow.entities import Run

log = logging.getLogger(__name__)

KEY_TAG, KEPT_TAG, DOUBLE_TAG = "opmon.key", "opmon.kept", "opmon.double_of"


@dataclass
class Kept:
    """The runs that this process has found or made: by experiment and key, and those that bear no mark yet."""

    by_key: dict[tuple[str, str], str] = field(default_factory=dict)
    keys: dict[str, tuple[str, str]] = field(default_factory=dict)
    unmarked: set[str] = field(default_factory=set)
    once: set[str] = field(default_factory=set)
    """Runs that one request has made, and nothing can make again."""
    ahead: set[str] = field(default_factory=set)
    """Experiments in which a new run was looked for, and was new."""

    def add(self, experiment_id: str, key: str, run_id: str, *, marked: bool) -> None:
        self.by_key[experiment_id, key] = run_id
        self.keys[run_id] = (experiment_id, key)
        if marked:
            self.unmarked.discard(run_id)
        else:
            self.unmarked.add(run_id)


def find_or_make(
    connection: Connection, kept: Kept, experiment_id: str, key: str, name: str, tags: Mapping[str, str], *, new: bool
) -> str:
    """The id of the run with this key; one that is ``new`` is made without a look for it."""
    if not key or "'" in key or "\\" in key:
        raise InputError(f"a run's key is not empty and has no quote or backslash in it; got {key!r}")
    tags = {**tags, KEY_TAG: key}
    if new and experiment_id in kept.ahead and (experiment_id, key) not in kept.by_key:
        made = make_once(connection, experiment_id, name, tags)
        if made is not None:
            kept.add(experiment_id, key, made, marked=False)
            kept.once.add(made)
            return made
    found = keep_one(connection, kept, experiment_id, key)
    if found is not None:
        kept.ahead.discard(experiment_id)
        return found
    lost: Exception | None = None
    try:
        made_now = connection.client.create_run(experiment_id, tags=tags, run_name=name)
        kept.add(experiment_id, key, str(made_now.info.run_id), marked=False)
    except Exception as exc:
        if is_answer(exc):
            raise
        lost = exc
    found = keep_one(connection, kept, experiment_id, key)
    if found is None:
        raise lost or NotFoundError(f"the run {name!r} was made, and MLflow does not find it")
    if new:
        kept.ahead.add(experiment_id)
    return found


def keep_one(connection: Connection, kept: Kept, experiment_id: str, key: str, known: str | None = None) -> str | None:
    """The run with this key: the one marked, else the one known, else the oldest. Others are removed."""
    found = connection.client.search_runs([experiment_id], f"tags.`{KEY_TAG}` = '{key}'", max_results=100)
    return _one_of(connection, kept, experiment_id, key, found, known) if found else None


def _one_of(
    connection: Connection, kept: Kept, experiment_id: str, key: str, found: Sequence[Run], known: str | None = None
) -> str:
    marked = [run for run in found if KEPT_TAG in run.data.tags]
    known = known or kept.by_key.get((experiment_id, key))
    one = min(marked or found, key=lambda run: (run.info.run_id != known, run.info.start_time, run.info.run_id))
    run_id = str(one.info.run_id)
    kept.add(experiment_id, key, run_id, marked=bool(marked))
    connection.places[run_id] = str(one.info.artifact_uri)
    for run in found:
        if run.info.run_id != run_id:
            _remove(connection, run, run_id)
    return run_id


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

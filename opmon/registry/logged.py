"""What production logged to MLflow beside models: runs with their artifacts, and traces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opmon.errors import NotFoundError
from opmon.registry.connection import Connection
from opmon.registry.translation import translated

_PAGE = 500
_DEEPEST = 8


@dataclass(frozen=True)
class LoggedRun:
    """A run; ``ended_ms`` is None while it goes on."""

    run_id: str
    ended_ms: int | None


@dataclass(frozen=True)
class LoggedTrace:
    """A request to a model with its answer, each as JSON."""

    trace_id: str
    ended_ms: int
    request: str | None
    response: str | None


class Logged:
    """One experiment of a tracking server, as far as it is read; every call ends in time."""

    def __init__(self, tracking_uri: str | None) -> None:
        self._connection = Connection(tracking_uri, None)

    @property
    def where(self) -> str:
        """The address, without credentials."""
        return self._connection.where

    def ended(self, experiment: str, condition: str, since_ms: int) -> Iterator[LoggedRun]:
        """Finished runs that ended at a moment or later, in that order, as a condition of MLflow's picks them."""
        asked = f"attributes.status = 'FINISHED' AND attributes.end_time >= {since_ms}"
        yield from self._runs(experiment, asked, condition, ["attributes.end_time ASC", "attributes.run_id ASC"])

    def running(self, experiment: str, condition: str) -> Iterator[LoggedRun]:
        """Runs that go on."""
        yield from self._runs(experiment, "attributes.status = 'RUNNING'", condition, ["attributes.start_time ASC"])

    def artifacts(self, run_id: str) -> Iterator[tuple[str, int]]:
        """The paths of a run's artifacts, with their sizes."""
        yield from self._below(run_id, None, _DEEPEST)

    def download(self, run_id: str, path: str, into: Path) -> Path:
        """A copy of an artifact below ``into``."""
        with translated(f"downloading {path} of run {run_id}", self.where):
            return self._connection.download(run_id, path, into)

    def traces(self, experiment: str, since_ms: int, until_ms: int) -> Iterator[LoggedTrace]:
        """Traces that went well and ended in this time; they are looked up by their end, as slow ones begin early."""
        number, token = self._experiment(experiment), None
        asked = f"trace.end_time_ms >= {since_ms} AND trace.end_time_ms < {until_ms} AND trace.status = 'OK'"
        while True:
            with translated(f"reading traces of {experiment!r}", self.where):
                page = self._connection.client.search_traces(
                    locations=[number], filter_string=asked, max_results=_PAGE, page_token=token, include_spans=True
                )
            for trace in page:
                info = trace.info
                ended = int(info.request_time) + int(info.execution_duration or 0)
                yield LoggedTrace(str(info.trace_id), ended, _text(trace.data.request), _text(trace.data.response))
            token = page.token
            if not token:
                return

    def _runs(self, experiment: str, asked: str, condition: str, order: list[str]) -> Iterator[LoggedRun]:
        number, token = self._experiment(experiment), None
        whole = f"{asked} AND {condition}" if condition else asked
        while True:
            with translated(f"looking for runs in {experiment!r}", self.where):
                page = self._connection.client.search_runs(
                    [number], whole, max_results=_PAGE, order_by=order, page_token=token
                )
            for run in page:
                yield LoggedRun(str(run.info.run_id), run.info.end_time)
            token = page.token
            if not token:
                return

    def _experiment(self, name: str) -> str:
        with translated(f"looking for the experiment {name!r}", self.where):
            found = self._connection.client.get_experiment_by_name(name)
        if found is None:
            raise NotFoundError(
                f"MLflow at {self.where} has no experiment {name!r}; correct 'experiment' of the source"
            )
        return str(found.experiment_id)

    def _below(self, run_id: str, folder: str | None, levels: int) -> Iterator[tuple[str, int]]:
        with translated(f"listing the artifacts of run {run_id}", self.where):
            listed: list[Any] = list(self._connection.client.list_artifacts(run_id, folder))
        for each in listed:
            if not each.is_dir:
                yield str(each.path), int(each.file_size or 0)
            elif levels:
                yield from self._below(run_id, str(each.path), levels - 1)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)

"""MLflow's tracking server: experiments, runs, and what is logged to them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlsplit

from opmon.abc import Dataset, Point, RunStatus, TaggedRun
from opmon.errors import InputError, NotFoundError
from opmon.registry._artifacts import Artifacts
from opmon.registry._datasets import dataset_inputs
from opmon.registry._keyed_runs import KEPT_TAG, KEY_TAG, Kept, find_or_make, keep_one
from opmon.registry.connection import Connection
from opmon.types import ModelVersion

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Metric, Run
    from mlflow.store.entities import PagedList

T = TypeVar("T")

_KEY = re.compile(r"[\w\-. /]+")
_PARAM_CHARACTERS = 6000
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}  # else its page is laid out for chat models
_BATCH = {"metrics": 1000, "params": 100, "tags": 100}
_PAGE = 1000
"""So many runs or experiments MLflow gives at once."""
_TOGETHER = 1000
"""So many numbers, parameters and tags MLflow takes in one call."""


class Tracking(Artifacts):
    """Experiments and runs. Opening a run by its key and logging to it may be repeated: nothing is doubled."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._kept = Kept()

    def give_up(self) -> None:
        """Wait for no call any more: opmon is stopping, and repeats its calls next time."""
        self._connection.calls.give_up()

    def within(self, seconds: float) -> AbstractContextManager[None]:
        return self._connection.calls.within(seconds)

    @property
    def address(self) -> str:
        """Where it is, without credentials."""
        return self._connection.where

    def experiment(self, name: str) -> str:
        """The id of the experiment, made where there is none, restored where it was deleted.

        A SQLite store keeps a new experiment's artifacts in a folder beside its file: MLflow's own default is the
        folder the process happens to run in, and a scheduled job runs anywhere.
        """
        with self._translated(f"opening the experiment {name!r}"):
            found = self._client.get_experiment_by_name(name)
            if found is None:
                try:
                    return str(self._client.create_experiment(name, self._beside(name), tags=_EXPERIMENT_TAGS))
                except Exception as exc:
                    if getattr(exc, "error_code", None) != "RESOURCE_ALREADY_EXISTS":
                        raise
                    found = self._client.get_experiment_by_name(name)  # another process was quicker
            if found.lifecycle_stage == "deleted":
                self._client.restore_experiment(found.experiment_id)
            return str(found.experiment_id)

    def run(
        self,
        experiment_id: str,
        key: str,
        name: str,
        parent: str | None = None,
        tags: Mapping[str, object] | None = None,
    ) -> str:
        """The id of the run with this key, made where there is none, so that neither a crash in between nor a lost
        answer doubles anything.
        """
        return self._run(experiment_id, key, name, parent, tags, new=False)

    def new_run(
        self,
        experiment_id: str,
        key: str,
        name: str,
        parent: str | None = None,
        tags: Mapping[str, object] | None = None,
    ) -> str:
        """The same, two calls less: it is made by one request, and looked for only where that was not answered."""
        return self._run(experiment_id, key, name, parent, tags, new=True)

    def _run(
        self,
        experiment_id: str,
        key: str,
        name: str,
        parent: str | None,
        tags: Mapping[str, object] | None,
        *,
        new: bool,
    ) -> str:
        all_tags = {str(k): str(v) for k, v in (tags or {}).items()}
        if parent is not None:
            all_tags["mlflow.parentRunId"] = parent
        with self._translated(f"opening the run {name!r}"):
            return find_or_make(self._connection, self._kept, experiment_id, key, name, all_tags, new=new)

    def finish_run(self, run_id: str, status: RunStatus = "FINISHED") -> None:
        """End a run; one that a lost request made in its place meanwhile is removed."""
        with self._translated(f"finishing run {run_id}"):
            self._client.set_terminated(run_id, status)
            if run_id in self._kept.once:
                self._kept.once.discard(run_id)
                return
            known = self._kept.keys.get(run_id)
            if known is None:
                run = self._client.get_run(run_id)
                key = run.data.tags.get(KEY_TAG)
                known = None if key is None else (str(run.info.experiment_id), str(key))
            if known is not None:
                keep_one(self._connection, self._kept, *known, known=run_id)

    def resume_run(self, run_id: str) -> None:
        with self._translated(f"resuming run {run_id}"):
            self._client.update_run(run_id, status="RUNNING")

    def running(self, experiment_id: str, kind: str) -> Collection[str]:
        asked = f"attributes.status = 'RUNNING' and tags.`opmon.kind` = '{kind}'"
        with self._translated(f"looking for runs of the kind {kind!r}"):
            return {str(run.info.run_id) for run in self._runs([experiment_id], asked)}

    def tagged(self, experiments: str, tags: Mapping[str, str]) -> list[TaggedRun]:
        for value in (experiments, *tags.values()):
            if "'" in value:
                raise InputError(f"runs are found by tags without quotes; got {value!r}")
        asked = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        like = f"name LIKE '{experiments}%'" if experiments.endswith("/") else f"name = '{experiments}'"
        with self._translated(f"looking for runs in {experiments}"):
            below: list[Experiment] = _all_pages(
                partial(self._client.search_experiments, filter_string=like, max_results=_PAGE)
            )
            known = [one.experiment_id for one in below]
            found = self._runs(known, asked) if known else []
        return [
            TaggedRun(run.info.run_id, dict(run.data.tags), datetime.fromtimestamp(run.info.start_time / 1000, UTC))
            for run in found
        ]

    def page_of(self, run_id: str, *, outside: bool = False) -> str | None:
        page = f"#/runs/{run_id}"
        return page if not outside else None if self._site is None else f"{self._site}/{page}"

    def picture_of(self, run_id: str, artifact_path: str) -> str | None:
        return f"get-artifact?path={quote(artifact_path)}&run_uuid={run_id}"

    def record(
        self,
        run_id: str,
        points: Sequence[Point] = (),
        params: Mapping[str, object] | None = None,
        tags: Mapping[str, object] | None = None,
        model: ModelVersion | None = None,
    ) -> None:
        """All of it in one call; what MLflow does not take at once is logged by kinds."""
        from mlflow.entities import Param, RunTag

        tags = dict(tags or {}) | ({KEPT_TAG: "true"} if run_id in self._kept.unmarked else {})
        metrics = _metrics(points, model.model_id if model else None)
        own = [Param(key, str(value)[:_PARAM_CHARACTERS]) for key, value in (params or {}).items()]
        told = [RunTag(key, str(value)) for key, value in tags.items()]
        together = len(metrics) + len(own) + len(told) <= _TOGETHER and max(len(own), len(told)) <= _BATCH["tags"]
        try:
            if not together:
                raise InputError("more than one call takes")
            with self._translated(f"logging to run {run_id}"):
                self._client.log_batch(run_id, metrics=metrics, params=own, tags=told, synchronous=True)
        except (InputError, NotFoundError):  # a parameter that has another value, or a model that was deleted
            super().record(run_id, points, params, tags, model)
        self._kept.unmarked.discard(run_id)

    def log_datasets(self, run_id: str, datasets: Sequence[Dataset]) -> None:
        place = self._connection.places.get(run_id)
        with self._translated(f"naming the datasets of run {run_id}"):
            if place is None:
                place = str(self._client.get_run(run_id).info.artifact_uri)
            self._client.log_inputs(run_id, dataset_inputs(datasets, run_id, place, self._site))

    def tag_run(self, run_id: str, tags: Mapping[str, object]) -> None:
        from mlflow.entities import RunTag

        self._log(run_id, "tags", [RunTag(key, str(value)) for key, value in tags.items()])

    def log_params(self, run_id: str, params: Mapping[str, object]) -> None:
        """The first value of a key stays: MLflow takes no other, and a run may be told again after an upgrade."""
        from mlflow.entities import Param

        with self._translated(f"reading the parameters of run {run_id}"):
            known = self._client.get_run(run_id).data.params
        new = {key: str(value)[:_PARAM_CHARACTERS] for key, value in params.items() if key not in known}
        self._log(run_id, "params", [Param(key, value) for key, value in new.items()])

    def log_metrics(
        self,
        run_id: str,
        metrics: Mapping[str, float | None],
        step: int,
        at: datetime,
        model: ModelVersion | None = None,
    ) -> None:
        """Log numbers at a step and moment; the same again is fine, and None, NaN and infinity are left out.

        They are attached to the model's LoggedModel too, where MLflow knows one; where that one was deleted, the
        numbers are kept all the same.
        """
        points = [Point(key, value, step, at) for key, value in metrics.items()]

        def log(model_id: str | None) -> None:
            self._log(run_id, "metrics", _metrics(points, model_id))

        model_id = model.model_id if model else None
        try:
            log(model_id)
        except (InputError, NotFoundError):
            if model_id is None:
                raise
            log(None)

    def metric_history(self, run_id: str, key: str) -> list[tuple[int, datetime, float]]:
        """All values of a metric as (step, moment, value), by step."""
        with self._translated(f"reading {key!r} of run {run_id}"):
            found = self._client.get_metric_history(run_id, key)
        rows = [(one.step, datetime.fromtimestamp(one.timestamp / 1000, UTC), float(one.value)) for one in found]
        return sorted(rows)

    @property
    def _site(self) -> str | None:
        """Where a browser finds MLflow's pages, without credentials; None where it is no server."""
        parts = urlsplit(self._connection.tracking_uri)
        if parts.scheme not in ("http", "https"):
            return None
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"

    def _beside(self, name: str) -> str | None:
        scheme, _, path = self._connection.tracking_uri.partition(":///")
        if not scheme.startswith("sqlite") or not path:
            return None
        folder = re.sub(r"[^\w.-]+", "-", name)
        return (Path(path).absolute().parent / "mlartifacts" / folder).as_uri()

    def _runs(self, experiments: list[str], asked: str) -> list[Run]:
        return _all_pages(partial(self._client.search_runs, experiments, asked, max_results=_PAGE))

    def _log(self, run_id: str, kind: str, items: Sequence[object]) -> None:
        with self._translated(f"logging {kind} to run {run_id}"):
            for start in range(0, len(items), _BATCH[kind]):
                self._client.log_batch(run_id, **{kind: items[start : start + _BATCH[kind]]}, synchronous=True)


def _all_pages(search: Callable[..., PagedList[T]]) -> list[T]:
    """All that there is, a page after the other."""
    page = search()
    found = list(page)
    while page.token:
        page = search(page_token=page.token)
        found += page
    return found


def _metrics(points: Sequence[Point], model_id: str | None) -> list[Metric]:
    """Those that are finite."""
    from mlflow.entities import Metric

    return [
        Metric(_metric_key(point.key), float(point.value), _milliseconds(point.at), point.step, model_id=model_id)
        for point in points
        if point.value is not None and math.isfinite(point.value)
    ]


def _milliseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise InputError(f"a moment must carry a time zone; got {moment.isoformat()} without one")
    return round(moment.timestamp() * 1000)


def _metric_key(key: str) -> str:
    if (
        not _KEY.fullmatch(key)
        or str(PurePosixPath(key)) != key
        or key.startswith("/")
        or ".." in key.split("/")
        or len(key) > 250
    ):
        raise InputError(
            f"a metric's name is letters, digits and _ - . / or blank, at most 250, such as accuracy/low; got {key!r}"
        )
    return key

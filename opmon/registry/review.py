"""The label provider ``mlflow_review``: people answer in MLflow's own review queues. Experimental, as those are."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from opmon.abc import LabelProvider, Pulled, Said
from opmon.errors import InputError, NotFoundError
from opmon.problems import traits
from opmon.registry._review_spans import span_of, trace_id_of
from opmon.registry.connection import Connection
from opmon.registry.translation import translated
from opmon.scales import FAIL, PASS, STARS
from opmon.types import Guide, Task

if TYPE_CHECKING:
    from opmon.registry._calls import Bounded

QUESTIONS = ("label", "label in words", "label as a number")
"""The question of a queue, by its form, and the name of the expectations that answer it: MLflow lets no question change
from a choice to a text, so that each form has a queue of its own."""
_PAGE = 500
_MOST_OPTIONS, _LONGEST_OPTION, _LONGEST_WORDS = 10, 64, 1000
"""What MLflow takes: with more classes, or longer names, the answer is typed."""
_THERE = "RESOURCE_ALREADY_EXISTS"


@dataclass(frozen=True)
class MlflowReview(LabelProvider):
    """Tasks become traces in a review queue of the experiment ``opmon/MONITOR/review``; people answer in MLflow's page.

    Experimental: review queues are an experimental part of MLflow (3.14 and later), and may change. Only drawn inputs
    become traces, each once, however often they are handed over: the task is in the trace's id. An answer is an
    expectation by a person; the last word of each counts, and an item that was declined is a skip. A value that is none
    of the classes is refused with the reason. What MLflow does otherwise than one might expect: the newest tasks come
    first; an answer does not complete its item (opmon completes it once it needs no more answers, within the hour); two
    people may answer one item at the same time; with more than ten classes the answer is typed; an answer that is
    deleted there stays a label here.
    """

    patience: ClassVar[float] = 180.0
    batch: ClassVar[int] = 200

    tracking_uri: str | None = field(default=None, repr=False)
    """The tracking server; none: what MLFLOW_TRACKING_URI says."""
    users: tuple[str, ...] = ()
    """The MLflow users whom the queue is assigned to, at most ten; none: everybody."""
    _monitor: str = field(default="", init=False, repr=False)
    _guide: Guide = field(default_factory=Guide, init=False, repr=False)

    def __post_init__(self) -> None:
        given: object = self.users
        if isinstance(given, str) or not all(isinstance(user, str) and user.strip() for user in self.users):
            raise InputError(f"users must be a list of the names of MLflow's users; got {self.users!r}")
        object.__setattr__(self, "users", tuple(self.users))
        if len(self.users) > 10:
            raise InputError(f"users must name ten at most, as MLflow has it; got {len(self.users)}")

    def bind(self, monitor: str, guide: Guide) -> Self:
        bound = copy.copy(self)
        object.__setattr__(bound, "_monitor", monitor)
        object.__setattr__(bound, "_guide", guide)
        return bound

    @property
    def experiment(self) -> str:
        """The experiment that holds the traces of the tasks, and nothing else."""
        return f"opmon/{self._monitor}/review"

    def check(self) -> str:
        experiment = self._experiment()
        if experiment is None:
            return f"MLflow at {self._connection.where} answers; {self.experiment!r} is made with the first tasks"
        return f"{self.experiment!r} at {self._connection.where} holds {sum(1 for _ in self._traces(experiment))} tasks"

    def push(self, tasks: Sequence[Task]) -> None:
        if not tasks:
            return
        experiment = self._experiment() or self._made_experiment()
        queue = self._queue(experiment, tasks[0])
        with translated("writing tasks as traces", self._connection.where):
            self._tracing.log_spans(experiment, [span_of(task, experiment) for task in tasks])
            ids = [trace_id_of(task.key, experiment) for task in tasks]
            self._tracing.add_items_to_review_queue(queue, item_ids=ids)

    def pull(self, since: str) -> Pulled:
        """All answers there are, whenever they were given: what was heard before changes nothing."""
        experiment = self._experiment()
        if experiment is None:
            return Pulled([], "")
        said: list[Said] = []
        keys: dict[str, str] = {}
        for trace_id, key, assessments in self._traces(experiment):
            keys[trace_id] = key
            said += [each for one in assessments if (each := _said(key, one)) is not None]
        for item in self._items(experiment):
            if item.status == "declined" and item.item_id in keys:
                said.append(Said(keys[item.item_id], item.completed_by or "mlflow", None, _at(item.completed_time_ms)))
        return Pulled(sorted(said, key=lambda each: each.at), "")

    def reconcile(self, open_keys: Collection[str]) -> Collection[str]:
        """The open tasks whose trace and item are both there; items of others that are still pending are completed."""
        experiment = self._experiment()
        if experiment is None:
            return ()
        keys = {trace_id: key for trace_id, key, _ in self._traces(experiment)}
        held = []
        for item in self._items(experiment):
            key = keys.get(item.item_id)
            if key in open_keys:
                held.append(str(key))
            elif key is not None and item.status == "pending":
                with translated("completing an item", self._connection.where):
                    self._tracing.set_review_queue_item_status(
                        item.queue_id, item_id=item.item_id, status="complete", completed_by="opmon"
                    )
        return held

    @cached_property
    def _connection(self) -> Connection:
        return Connection(self.tracking_uri, None)

    @cached_property
    def _tracing(self) -> Bounded:
        """MLflow's store: what its client for review queues calls, without its global state."""
        return self._connection.store

    def _experiment(self) -> str | None:
        with translated(f"looking for the experiment {self.experiment!r}", self._connection.where):
            found = self._connection.client.get_experiment_by_name(self.experiment)
        if found is None:
            return None
        if found.lifecycle_stage != "active":
            raise NotFoundError(f"the experiment {self.experiment!r} was deleted in MLflow: restore it, with its tasks")
        return str(found.experiment_id)

    def _made_experiment(self) -> str:
        with translated(f"making the experiment {self.experiment!r}", self._connection.where):
            made = _unless_there(lambda: str(self._connection.client.create_experiment(self.experiment)))
        return made or self._experiment() or ""

    def _queue(self, experiment: str, task: Task) -> str:
        """The queue, made where it is not there; its question always asks for the classes of today."""
        names = list(self._guide.said_of(task.classes))
        question, asked = _form(self._guide, names)
        words = _instruction(self._guide, names)
        store = self._tracing
        with translated("making the review queue", self._connection.where):
            new = {"name": question, "type": "expectation", "input": asked, "instruction": words}
            made = _unless_there(lambda: store.create_label_schema(experiment_id=experiment, **new))
            schema = made or store.get_label_schema_by_name(experiment, question)
            if made is None and (schema.input != asked or schema.instruction != words):
                store.update_label_schema(schema.schema_id, input=asked, instruction=words)
            about = {"name": _queue_of(question), "queue_type": "custom", "users": list(self.users)}
            queue = _unless_there(lambda: store.create_review_queue(experiment, schema_ids=[schema.schema_id], **about))
            return str((queue or store.get_review_queue_by_name(experiment, name=_queue_of(question))).queue_id)

    def _items(self, experiment: str) -> Iterator[Any]:
        """The items of the queues that are there."""
        for question in QUESTIONS:
            try:
                with translated("looking for the review queue", self._connection.where):
                    queue = self._tracing.get_review_queue_by_name(experiment, name=_queue_of(question))
            except NotFoundError:
                continue
            yield from self._items_of(queue.queue_id)

    def _items_of(self, queue: str) -> Iterator[Any]:
        token = None
        while True:
            with translated("reading the review queue", self._connection.where):
                page = self._tracing.list_review_queue_items(queue, max_results=_PAGE, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def _traces(self, experiment: str) -> Iterator[tuple[str, str, Sequence[Any]]]:
        """The id, the task's key and the assessments of every trace that is a task."""
        token = None
        while True:
            with translated("reading answers", self._connection.where):
                page, token = self._tracing.search_traces(locations=[experiment], max_results=_PAGE, page_token=token)
            for info in page:
                key = info.trace_metadata.get("mlflow.trace.session")
                if key and info.trace_id == trace_id_of(key, experiment):
                    yield str(info.trace_id), str(key), info.assessments or ()
            if not token:
                return


def _said(key: str, assessment: Any) -> Said | None:
    """What a person answered; None for what is no answer to the question, or is nobody's."""
    value = getattr(assessment, "value", None)
    by_person = str(assessment.source.source_type) == "HUMAN"
    if assessment.name not in QUESTIONS or assessment.expectation is None or not by_person or value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return Said(key, assessment.source.source_id or "mlflow", text, _at(assessment.last_update_time_ms))


def _form(guide: Guide, names: Sequence[str]) -> tuple[str, Any]:
    """The question, and what may be answered: one of a few classes, any text, or a number."""
    from mlflow.genai.label_schemas.label_schemas import InputCategorical, InputNumeric, InputText

    if traits(guide.problem).of_numbers or guide.scale == "score":
        return QUESTIONS[2], InputNumeric()
    if guide.problem == "multilabel":
        return QUESTIONS[1], InputText(max_length=500)
    names = _GRADES.get(guide.scale or "", names)
    if 0 < len(names) <= _MOST_OPTIONS and max(map(len, names)) <= _LONGEST_OPTION:
        return QUESTIONS[0], InputCategorical(options=list(names))
    return QUESTIONS[1], InputText(max_length=500)


_GRADES = {"pass_fail": (PASS, FAIL), "stars": tuple(str(stars) for stars in range(1, STARS + 1))}
"""What may be said of an output that is judged."""


def _queue_of(question: str) -> str:
    return question.replace("label", "opmon")


def _at(milliseconds: int | None) -> datetime:
    return datetime.fromtimestamp((milliseconds or 0) / 1000, UTC)


def _instruction(guide: Guide, names: Sequence[str]) -> str | None:
    """The guidelines, and the classes where they are not seen or have descriptions; as long as MLflow takes them."""
    told = [f"{name}: {text}" if text else name for name, text in guide.said_of(tuple(names)).items()]
    listed = len(names) > _MOST_OPTIONS or any(guide.classes.values())
    words = "\n\n".join(each for each in (guide.guidelines.strip(), "\n".join(told) if listed else "") if each)
    return words[:_LONGEST_WORDS] or None


def _unless_there(make: Any) -> Any:
    """What is made; None where it is there already."""
    from mlflow.exceptions import MlflowException

    try:
        return make()
    except MlflowException as exc:
        if exc.error_code != _THERE:
            raise
        return None

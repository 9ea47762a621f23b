"""The label provider ``label_studio``."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from opmon.abc import LabelProvider, Pulled
from opmon.errors import InputError, NotFoundError, UnavailableError
from opmon.labels.studio.tasks import Layout, layout_of, plain_payload, task_form
from opmon.types import Guide, Json, Task
from opmon_label_studio import project as projects
from opmon_label_studio.answers import Cursor, heard
from opmon_label_studio.client import Client, address
from opmon_label_studio.project import Project, title_of
from opmon_label_studio.reading import mapping, text
from opmon_label_studio.tasks import add, ask, remove, there


@dataclass(frozen=True)
class LabelStudio(LabelProvider):
    """Puts tasks into a project of Label Studio and polls its annotations; its webhooks are not needed.

    The project is ``project`` (a number or a title; ``opmon: MONITOR`` if not given): one that is not there by its
    title is made, with a labelling configuration for what the tasks hold and the guidelines as its instructions. A task
    is known by opmon's key in its ``data`` and looked up before it is imported. An annotation that is deleted there has
    been said all the same; a task that is deleted is put there again.
    """

    patience: ClassVar[float] = 300.0
    batch: ClassVar[int] = 200

    url: str
    """Label Studio's address."""
    token: str = field(repr=False)
    """A personal access token, or a legacy token."""
    project: int | str | None = None
    """The project's number or title."""
    timeout: float = 30.0
    """Seconds for each call."""
    _monitor: str = field(default="", init=False, repr=False)
    _guide: Guide = field(default=Guide(), init=False, repr=False)

    def __post_init__(self) -> None:
        address(self.url)
        if not self.token.strip() or not self.token.strip().isascii() or any(map(str.isspace, self.token.strip())):
            raise InputError("token must be a token of Label Studio's, such as ${LABEL_STUDIO_TOKEN}")
        if isinstance(self.project, str) and not 3 <= len(self.project) <= 50:
            raise InputError("project must be a project's number, or a title of 3 to 50 characters")
        if isinstance(self.timeout, bool) or not (math.isfinite(self.timeout) and 0 < self.timeout <= 300):
            raise InputError(f"timeout must be a number of seconds above 0 and at most 300; got {self.timeout!r}")

    @property
    def asks(self) -> str:
        return self._client().shown

    def bind(self, monitor: str, guide: Guide) -> LabelStudio:
        bound = replace(self)
        object.__setattr__(bound, "_monitor", monitor)
        object.__setattr__(bound, "_guide", guide)
        return bound

    def check(self) -> str:
        client = self._client()
        release = text(mapping(client.get("/api/version")).get("release"))
        found = projects.find(client, self._wanted)
        if found is None and isinstance(self._wanted, int):
            raise self._gone(client, self._wanted)
        if found is None:
            client.get("/api/projects/", page_size=1)  # the token is good
            return f"{client.shown}, release {release}: the project {self._wanted!r} is made with the first tasks"
        return (
            f"{client.shown}, release {release}: the project {found.id} {found.title!r} has {found.tasks:,} tasks, "
            f"{found.answered:,} of them answered"
        )

    def push(self, tasks: Sequence[Task]) -> None:
        client = self._client()
        payloads = [plain_payload(task) for task in tasks]
        layout = layout_of(payloads, self._guide)
        classes = self._guide.said_of(tuple(dict.fromkeys(name for task in tasks for name in task.classes)))
        place = projects.find(client, self._wanted)
        if place is None and isinstance(self._wanted, int):
            raise self._gone(client, self._wanted)
        if place is None:
            place = projects.make(client, str(self._wanted), self._monitor, self._guide, layout.shown, classes)
        else:
            place = projects.kept_up(client, place, self._guide, layout.shown, classes)
        self._put(client, place, list(zip(tasks, payloads, strict=True)), layout)

    def pull(self, since: str) -> Pulled:
        client, before = self._client(), Cursor.of(since)
        place = projects.find(client, self._wanted)
        if place is None and (before.project is not None or isinstance(self._wanted, int)):
            raise self._gone(client, before.project or self._wanted)
        if place is None:
            return Pulled((), since)
        return heard(client, place, before if before.project == place.id else Cursor(place.id))

    def reconcile(self, open_keys: Collection[str]) -> Collection[str]:
        client = self._client()
        place = projects.find(client, self._wanted)
        if place is None and isinstance(self._wanted, int):
            raise self._gone(client, self._wanted)
        if place is None:
            return set()
        known = there(client, place, open_keys)
        for task in known.values():
            if task.answered >= task.wants:  # all whom it was shown to have answered, and it is still open
                ask(client, task, task.answered + 1)
        return known.keys()

    def forget(self, keys: Collection[str]) -> Collection[str]:
        """Delete the tasks there and the files of their pictures, in whichever project they are; answers to them that
        were polled are kept by opmon."""
        client = self._client()
        left = {key for number in projects.numbers(client) for key in remove(client, number, keys)}
        return set(keys) - left

    def _put(
        self, client: Client, place: Project, asked: Sequence[tuple[Task, dict[str, Json]]], layout: Layout
    ) -> None:
        """Import the tasks that are not there, and have each shown to as many annotators as it needs."""
        keys = [task.key for task, _ in asked]
        known = there(client, place, keys)
        new = [(task, payload) for task, payload in asked if task.key not in known]
        if new:
            add(client, place, [task_form(task, payload, layout, _told(task)) for task, payload in new])
            known = there(client, place, keys)
        if len(known) < len(set(keys)):
            raise UnavailableError(f"{client.shown} does not show all tasks that it took; they are looked for again")
        fresh = {task.key for task, _ in new}
        for task, _ in asked:
            held = known[task.key]
            ask(client, held, task.needs if task.key in fresh else max(task.needs, held.wants))

    @property
    def _wanted(self) -> int | str:
        return title_of(self._monitor) if self.project is None else self.project

    def _client(self) -> Client:
        return Client(self.url, self.token.strip(), self.timeout)

    def _gone(self, client: Client, number: int | str) -> NotFoundError:
        named = "" if isinstance(self._wanted, int) else f" {self._wanted!r}"
        return NotFoundError(
            f"{client.shown} has no project {number}{named} any more, or the token may not see it. Answers that were "
            "polled are kept. Name another project in labels.provider.project (a new title makes one): the open tasks "
            "go there"
        )


def _told(task: Task) -> dict[str, Json]:
    return {} if task.due_at is None else {"due_at": task.due_at.isoformat()}

"""Tasks in a project: found by opmon's key before they are made, so that an import that is tried again doubles none."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from opmon.errors import NotFoundError, UnavailableError
from opmon.labels.studio.pictures import content_of
from opmon.labels.studio.tasks import KEY, key_in
from opmon.types import Json
from opmon_label_studio.client import Client
from opmon_label_studio.project import Project
from opmon_label_studio.reading import mapping, number, objects, text

log = logging.getLogger(__name__)

T = TypeVar("T")

PAGE = 500
_AT_ONCE = 100
"""How many keys are asked for in one address, which servers take up to 4 kB of."""
_LARGEST_REQUEST = 20 * 1024 * 1024
_MOST_TASKS, _MOST_FILES = 500, 50
"""In one request; Label Studio takes up to 100 files."""
_COUNTS = "id,meta,overlap,total_annotations,cancelled_annotations"
_INLINE = 16 * 1024
"""Pictures of more characters are uploaded as files: they would be read with every list of tasks."""
_ALONE = (frozenset({"picture"}), frozenset({"picture", "lines"}))
"""What a project shows that takes files: Label Studio refuses them where tasks have several parts with names."""


def selected(
    client: Client, project: Project, filters: Sequence[Json], include: str, beyond: int = 0, **query: object
) -> Iterator[Mapping[str, Json]]:
    """All tasks that pass the filters, by their numbers, from the one behind ``beyond`` on.

    What comes or goes meanwhile shifts none out of sight.
    """
    while True:
        behind = wanted("id", "greater", "Number", beyond)
        asked = {"filters": {"conjunction": "and", "items": [*filters, behind]}, "ordering": ["tasks:id"]}
        page = client.get(
            "/api/tasks", project=project.id, query=json.dumps(asked), page_size=PAGE, include=include, **query
        )
        found = objects(mapping(page).get("tasks"))
        yield from found
        if len(found) < PAGE:
            return
        beyond = max(number(task.get("id")) for task in found)


def wanted(column: str, operator: str, kind: str, value: Json) -> Json:
    """A filter of the data manager."""
    return {"filter": f"filter:tasks:{column}", "operator": operator, "type": kind, "value": value}


@dataclass(frozen=True, slots=True)
class There:
    """A task as it stands in the project."""

    id: int
    wants: int
    """How many annotators it is shown to."""
    answered: int
    """How many have answered it or skipped it."""

    @classmethod
    def of(cls, task: Mapping[str, Json]) -> There:
        """From what the API answers."""
        counts = [number(task.get(name) or 0) for name in ("total_annotations", "cancelled_annotations")]
        return cls(number(task.get("id")), number(task.get("overlap") or 1), sum(counts))


def there(client: Client, project: Project, keys: Collection[str]) -> dict[str, There]:
    """Those of the keys whose tasks the project has. One that is there twice, unanswered, is so no more."""
    found: dict[str, list[Mapping[str, Json]]] = {}
    ordered = sorted(keys)
    for start in range(0, len(ordered), _AT_ONCE):
        some = wanted(f"data.{KEY}", "in_list", "String", [*ordered[start : start + _AT_ONCE]])
        for task in selected(client, project, [some], _COUNTS):
            key = key_in(task)
            if key is not None and key in keys:
                found.setdefault(key, []).append(task)
    return {key: There.of(_one(client, key, tasks)) for key, tasks in found.items()}


def ask(client: Client, task: There, annotators: int) -> None:
    """Have a task shown to so many annotators."""
    if task.wants != annotators:
        told: Json = {"overlap": annotators, "is_labeled": task.answered >= annotators}
        client.patch(f"/api/tasks/{task.id}/", told)


def add(client: Client, project: Project, forms: Sequence[Mapping[str, Json]]) -> None:
    """Import tasks, in this order; the caller has seen that none of them is there."""
    for some in _portions(_with_files(client, project, forms), lambda form: len(json.dumps(form)), _MOST_TASKS):
        answer = mapping(client.post(f"/api/projects/{project.id}/import", [dict(form) for form in some]))
        if answer.get("task_count") != len(some):
            raise UnavailableError(
                f"{client.shown} took {answer.get('task_count')} of {len(some)} tasks; they are checked again"
            )


def _one(client: Client, key: str, tasks: Sequence[Mapping[str, Json]]) -> Mapping[str, Json]:
    """The one that stays of tasks with the same key: an import that was cut off has doubled it.

    Those that nobody has begun to answer are deleted, but for one; answers to any of them are heard.
    """
    if len(tasks) == 1:
        return tasks[0]
    begun = [task for task in tasks if _begun(client, task)]
    untouched = [task for task in tasks if task not in begun]
    for task in untouched if begun else untouched[1:]:
        log.warning("the task %s is in Label Studio twice: its task %s is deleted", key, task.get("id"))
        try:
            client.delete(f"/api/tasks/{number(task.get('id'))}/")
        except NotFoundError:
            continue
    return (begun or untouched)[0]


def _begun(client: Client, task: Mapping[str, Json]) -> bool:
    """Whether somebody has answered a task, or has kept a draft of an answer."""
    whole = mapping(client.get(f"/api/tasks/{number(task.get('id'))}/", include="id,drafts,annotations"))
    return bool(whole.get("drafts")) or bool(whole.get("annotations"))


def _with_files(client: Client, project: Project, forms: Sequence[Mapping[str, Json]]) -> list[Mapping[str, Json]]:
    """The tasks with their pictures in files of the project, where they are large."""
    if project.shown not in _ALONE:
        return list(forms)
    files: dict[str, tuple[str, bytes]] = {}
    for form in forms:
        data = mapping(form["data"])
        file = content_of(text(data.get("picture"))) if len(text(data.get("picture"))) > _INLINE else None
        if file is not None:
            files[text(data[KEY])] = f"{data[KEY]}.{file[1]}", file[0]
    stored = _uploaded(client, project, files)
    return [
        {**form, "data": {**mapping(form["data"]), "picture": stored[key]}}
        if (key := text(mapping(form["data"])[KEY])) in stored
        else form
        for form in forms
    ]


def _uploaded(client: Client, project: Project, files: Mapping[str, tuple[str, bytes]]) -> dict[str, str]:
    """Where the files are that were uploaded, by the keys of their tasks."""
    stored: dict[str, str] = {}
    for some in _portions(list(files), lambda key: len(files[key][1]), _MOST_FILES):
        path = f"/api/projects/{project.id}"
        taken = mapping(client.upload(f"{path}/import", [files[key] for key in some], commit_to_project="false"))
        ids = taken.get("file_upload_ids")
        told = objects(client.get(f"{path}/file-uploads", ids=json.dumps(ids)))
        names = {number(file.get("id")): text(file.get("file")) for file in told}
        if not isinstance(ids, list) or len(ids) != len(some) or set(names) != set(ids):
            raise UnavailableError(f"{client.shown} did not take all {len(some)} pictures; they are sent again")
        stored |= {key: f"{client.base}/data/{names[number(at)]}" for key, at in zip(some, ids, strict=True)}
    return stored


def _portions(items: Sequence[T], size_of: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """The items in portions that a request takes: of so many at most, and not too large."""
    portion: list[T] = []
    size = 0
    for item in items:
        length = size_of(item)
        if portion and (size + length > _LARGEST_REQUEST or len(portion) == most):
            yield portion
            portion, size = [], 0
        portion.append(item)
        size += length
    if portion:
        yield portion

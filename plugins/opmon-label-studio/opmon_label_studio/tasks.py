"""Tasks in a project: found by opmon's key before they are made, so that an import that is tried again doubles none."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opmon.errors import NotFoundError, UnavailableError
from opmon.labels.studio.pictures import content_of
from opmon.labels.studio.tasks import KEY, key_in
from opmon.types import Json
from opmon_label_studio.client import Client
from opmon_label_studio.project import Project
from opmon_label_studio.reading import mapping, number, objects

log = logging.getLogger(__name__)

PAGE = 500
_AT_ONCE = 100
"""How many keys are asked for in one address, which servers take up to 4 kB of."""
_LARGEST_IMPORT = 20 * 1024 * 1024
_BEGUN = ("total_annotations", "cancelled_annotations", "draft_exists")
_COUNTS = "id,meta,overlap,total_annotations,cancelled_annotations,draft_exists"
_INLINE = 16 * 1024
"""Pictures of more characters are uploaded as files: they would be read with every list of tasks."""
_ALONE = (frozenset({"picture"}), frozenset({"picture", "lines"}))
"""What a project shows that takes files: Label Studio refuses them where tasks have several parts with names."""


def selected(
    client: Client, project: Project, filters: Sequence[Json], include: str, **query: object
) -> Iterator[Mapping[str, Json]]:
    """All tasks that pass the filters, by their numbers; what comes or goes meanwhile shifts none out of sight."""
    last = 0
    while True:
        beyond = wanted("id", "greater", "Number", last)
        asked = {"filters": {"conjunction": "and", "items": [*filters, beyond]}, "ordering": ["tasks:id"]}
        page = client.get(
            "/api/tasks", project=project.id, query=json.dumps(asked), page_size=PAGE, include=include, **query
        )
        found = objects(mapping(page).get("tasks"))
        yield from found
        if len(found) < PAGE:
            return
        last = max(number(task.get("id")) for task in found)


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
        for task in selected(client, project, [some], _COUNTS, fields="all"):
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
    for some in _portions([_with_files(client, project, form) for form in forms]):
        answer = mapping(client.post(f"/api/projects/{project.id}/import", some))
        if answer.get("task_count") != len(some):
            raise UnavailableError(
                f"{client.shown} took {answer.get('task_count')} of {len(some)} tasks; they are checked again"
            )


def _one(client: Client, key: str, tasks: Sequence[Mapping[str, Json]]) -> Mapping[str, Json]:
    """The one that stays of tasks with the same key: an import that was cut off has doubled it.

    Those that nobody has begun to answer are deleted, but for one; answers to any of them are heard.
    """
    begun = [task for task in tasks if any(task.get(name) for name in _BEGUN)]
    untouched = [task for task in tasks if task not in begun]
    for task in untouched if begun else untouched[1:]:
        log.warning("the task %s is in Label Studio twice: its task %s is deleted", key, task.get("id"))
        try:
            client.delete(f"/api/tasks/{number(task.get('id'))}/")
        except NotFoundError:
            continue
    return (begun or untouched)[0]


def _with_files(client: Client, project: Project, form: Mapping[str, Json]) -> dict[str, Json]:
    """The task with its picture in a file of the project, where it is large."""
    data = mapping(form["data"])
    picture = data.get("picture")
    if project.shown not in _ALONE or not isinstance(picture, str) or len(picture) <= _INLINE:
        return dict(form)
    file = content_of(picture)
    if file is None:
        return dict(form)
    content, ending = file
    name = f"{data[KEY]}.{ending}"
    taken = mapping(client.upload(f"/api/projects/{project.id}/import", [(name, content)], commit_to_project="false"))
    ids = json.dumps(taken.get("file_upload_ids"))
    (stored,) = objects(client.get(f"/api/projects/{project.id}/file-uploads", ids=ids))
    return {**form, "data": {**data, "picture": f"{client.base}/data/{stored['file']}"}}


def _portions(forms: Sequence[Mapping[str, Json]]) -> Iterator[list[Json]]:
    portion: list[Json] = []
    size = 0
    for form in forms:
        length = len(json.dumps(form))
        if portion and size + length > _LARGEST_IMPORT:
            yield portion
            portion, size = [], 0
        portion.append(dict(form))
        size += length
    if portion:
        yield portion

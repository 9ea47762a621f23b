"""Tasks in a project: found by opmon's key before they are made, so that an import that is tried again doubles none."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
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
FILE = "file"
"""Under this name a task notes the number of the file that has its picture."""
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
    client: Client, project: int, filters: Sequence[Json], include: str, beyond: int = 0, **query: object
) -> Iterator[Mapping[str, Json]]:
    """All tasks that pass the filters, by their numbers, from the one behind ``beyond`` on.

    What comes or goes meanwhile shifts none out of sight.
    """
    while True:
        behind = wanted("id", "greater", "Number", beyond)
        asked = {"filters": {"conjunction": "and", "items": [*filters, behind]}, "ordering": ["tasks:id"]}
        page = client.get(
            "/api/tasks", project=project, query=json.dumps(asked), page_size=PAGE, include=include, **query
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
    found = _by_key(client, project.id, keys, _COUNTS)
    return {key: There.of(_one(client, key, tasks)) for key, tasks in found.items()}


def remove(client: Client, project: int, keys: Collection[str]) -> set[str]:
    """Delete all tasks of these keys in a project, and the files of their pictures; gives the keys of those that stay,
    because nothing says which file shows their picture.

    A file goes before its task, which tells of it: so what was cut off is found again.
    """
    files = _files(client, project)
    for name, file in files.items():
        if _key_of(name) in keys:
            _delete(client, f"/api/import/file-upload/{file}")
    left: set[str] = set()
    for key, tasks in _by_key(client, project, keys, "id,data,meta").items():
        for task in tasks:
            shown = _file_in(client, task)
            holds = None if shown is None else files.get(shown, _noted(task))
            if shown is not None and holds is None:
                left.add(key)
                continue
            if holds is not None:
                _delete(client, f"/api/import/file-upload/{holds}")
            _delete(client, f"/api/tasks/{number(task.get('id'))}/")
    return left


def _by_key(client: Client, project: int, keys: Collection[str], include: str) -> dict[str, list[Mapping[str, Json]]]:
    """The tasks of a project that have these keys."""
    found: dict[str, list[Mapping[str, Json]]] = {}
    ordered = sorted(keys)
    for start in range(0, len(ordered), _AT_ONCE):
        some = wanted(f"data.{KEY}", "in_list", "String", [*ordered[start : start + _AT_ONCE]])
        for task in selected(client, project, [some], include):
            key = key_in(task)
            if key is not None and key in keys:
                found.setdefault(key, []).append(task)
    return found


def _files(client: Client, project: int) -> dict[str, int]:
    """The files that the token's user has put into a project: their numbers by their names."""
    told = objects(client.get(f"/api/projects/{project}/file-uploads", all="true"))
    return {text(file.get("file")): number(file.get("id")) for file in told}


def _key_of(name: str) -> str:
    """The key of the task whose picture is in a file that opmon has put there, to which Label Studio gave its name.

    >>> _key_of("upload/7/0a1b2c3d-t1-0123456789ab.png")
    't1-0123456789ab'
    """
    return name.rpartition("/")[2].partition("-")[2].rpartition(".")[0]


def _file_in(client: Client, task: Mapping[str, Json]) -> str | None:
    """The name of the file that shows the picture of a task; None where the picture is in no file of Label Studio's."""
    before, upload, name = text(mapping(task.get("data")).get("picture")).partition("/data/upload/")
    return f"upload/{name}" if upload and before == client.base else None


def _noted(task: Mapping[str, Json]) -> int | None:
    """The number of the file with the picture of a task, as it was noted when the task was made."""
    told = mapping(task.get("meta")).get(KEY)
    file = told.get(FILE) if isinstance(told, dict) else None
    return None if file is None else number(file)


def _delete(client: Client, path: str) -> None:
    """Delete what may be gone already."""
    with suppress(NotFoundError):
        client.delete(path)


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
        _delete(client, f"/api/tasks/{number(task.get('id'))}/")
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
    return [_shown_by(form, stored.get(text(mapping(form["data"])[KEY]))) for form in forms]


def _shown_by(form: Mapping[str, Json], file: tuple[str, int] | None) -> Mapping[str, Json]:
    """The task with its picture in a file, of which its number is noted: it is removed by that."""
    if file is None:
        return form
    told = mapping(mapping(form["meta"])[KEY])
    data: Json = {**mapping(form["data"]), "picture": file[0]}
    return {**form, "data": data, "meta": {KEY: {**told, FILE: file[1]}}}


def _uploaded(client: Client, project: Project, files: Mapping[str, tuple[str, bytes]]) -> dict[str, tuple[str, int]]:
    """Where the files are that were uploaded, and their numbers, by the keys of their tasks."""
    stored: dict[str, tuple[str, int]] = {}
    for some in _portions(list(files), lambda key: len(files[key][1]), _MOST_FILES):
        path = f"/api/projects/{project.id}"
        taken = mapping(client.upload(f"{path}/import", [files[key] for key in some], commit_to_project="false"))
        ids = taken.get("file_upload_ids")
        told = objects(client.get(f"{path}/file-uploads", ids=json.dumps(ids)))
        names = {number(file.get("id")): text(file.get("file")) for file in told}
        if not isinstance(ids, list) or len(ids) != len(some) or set(names) != set(ids):
            raise UnavailableError(f"{client.shown} did not take all {len(some)} pictures; they are sent again")
        places = [(f"{client.base}/data/{names[number(at)]}", number(at)) for at in ids]
        stored |= dict(zip(some, places, strict=True))
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

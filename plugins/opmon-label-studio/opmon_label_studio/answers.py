"""What annotators said in a project since it was last looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from opmon.abc import Pulled, Said
from opmon.errors import NotFoundError
from opmon.labels.rows import RowError
from opmon.labels.studio.annotations import Annotation, annotations_of
from opmon.labels.studio.exported import annotator_name
from opmon.labels.studio.tasks import key_in
from opmon.types import Json
from opmon_label_studio.client import Client, ForbiddenError
from opmon_label_studio.project import Project
from opmon_label_studio.reading import number, objects, text
from opmon_label_studio.tasks import PAGE, selected, wanted

MOST = 20 * PAGE
"""So many tasks are read in one poll; the next one goes on with the others."""
_OVERLAP = timedelta(minutes=6)
"""What was said while a poll was under way, which may take five minutes, is read again by the next one."""
_INCLUDE = "id,meta,updated_at,annotations,result,completed_by,was_cancelled,created_at,lead_time"


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the answers of a project were heard."""

    project: int | None = None
    since: str | None = None
    """All changes up to this moment were read."""
    latest: str | None = None
    """The newest change that the first poll of the sweep that is under way has seen: the next sweep begins there."""
    beyond: int = 0
    """The sweep goes on behind the task of this number; 0: a new one begins."""

    @classmethod
    def of(cls, written: str) -> Cursor:
        """From what :attr:`text` gave."""
        return cls(**json.loads(written)) if written else cls()

    @property
    def text(self) -> str:
        """As it is kept between polls."""
        return json.dumps(asdict(self))


def heard(client: Client, project: Project, before: Cursor, most: int = MOST, *, now: datetime | None = None) -> Pulled:
    """The answers in tasks that were changed since the last sweep, or shortly before its end.

    Label Studio's clock says when that was. Where it is ahead, a sweep ends no later than ``now`` all the same: what is
    said once it was set right would lie before its end. Where a sweep has ended later than now, all is read again.
    """
    now = (now or datetime.now(UTC)).astimezone(UTC)
    if before.since is not None and datetime.fromisoformat(before.since) > now + _OVERLAP:
        before = Cursor(project.id)
    filters = [wanted("annotators", "empty", "List", False)]
    if before.since is not None:
        begin = (datetime.fromisoformat(before.since) - _OVERLAP).astimezone(UTC)
        filters.append(wanted("updated_at", "greater", "Datetime", begin.strftime("%Y-%m-%dT%H:%M:%S.%fZ")))
    found = selected(client, project.id, filters, _INCLUDE, before.beyond, fields="all")
    # a task with several answers comes several times
    tasks = {number(task.get("id")): task for task in islice(found, most)}
    latest = before.latest
    if not before.beyond:
        latest = max(filter(None, (before.since, *map(_changed, tasks.values()))), default=None)
        latest = None if latest is None else min(latest, now.isoformat(timespec="microseconds"))
    if len(tasks) < most and next(found, None) is None:
        cursor = Cursor(project.id, since=latest)
    else:
        cursor = Cursor(project.id, before.since, latest, max(tasks))
    said, problems = _answers(client, [task for task in tasks.values() if key_in(task) is not None])
    return Pulled(said, cursor.text, problems)


def _answers(client: Client, tasks: list[Mapping[str, Json]]) -> tuple[list[Said], list[str]]:
    """What was said of the tasks, in the order in which it was said, and what cannot be read."""
    answers: list[tuple[str, Annotation]] = []
    problems: list[str] = []
    for task in tasks:
        key = key_in(task) or ""
        for each in annotations_of(task):
            if isinstance(each, RowError):
                problems.append(f"the annotation of task {key} {each}")
            else:
                answers.append((key, each))
    names = _names(client) if answers else {}
    answers.sort(key=lambda answer: answer[1].at)
    said = [
        Said(key, names.get(each.by) or annotator_name(each.by), each.truth, each.at, seconds=each.seconds)
        for key, each in answers
    ]
    return said, problems


def _changed(task: Mapping[str, Json]) -> str:
    """When a task was changed, so that texts are in the order of the moments."""
    return datetime.fromisoformat(text(task.get("updated_at"))).astimezone(UTC).isoformat(timespec="microseconds")


def _names(client: Client) -> dict[int | str, str]:
    """The e-mail addresses of users by their numbers; none where the token may not see them.

    Where they are not told this time, nothing is heard: answers read again would be another person's by name.
    """
    try:
        users = objects(client.get("/api/users/"))
    except (NotFoundError, ForbiddenError):
        return {}
    return {number(user.get("id")): text(user.get("email")) or text(user.get("username")) for user in users}

"""What annotators said in a project since it was last looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from opmon.abc import Said
from opmon.errors import NotFoundError, UnavailableError
from opmon.labels.rows import RowError
from opmon.labels.studio.annotations import Annotation, annotations_of
from opmon.labels.studio.exported import annotator_name
from opmon.labels.studio.tasks import key_in
from opmon_label_studio.client import Client
from opmon_label_studio.project import Project
from opmon_label_studio.reading import number, objects, text
from opmon_label_studio.tasks import selected, wanted

_OVERLAP = timedelta(minutes=2)
"""What was noted shortly before the newest answer may have become visible after it."""
_INCLUDE = "id,meta,updated_at,annotations,result,completed_by,was_cancelled,created_at,lead_time"


@dataclass
class Heard:
    """Answers, the moment of the newest change among their tasks, and what could not be read."""

    said: list[Said] = field(default_factory=list)
    latest: datetime | None = None
    problems: list[str] = field(default_factory=list)


def heard(client: Client, project: Project, since: datetime | None) -> Heard:
    """All answers in tasks that were changed since the moment, or shortly before it; all there are where it is None."""
    filters = [wanted("annotators", "empty", "List", False)]
    if since is not None:
        begin = (since - _OVERLAP).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        filters.append(wanted("updated_at", "greater", "Datetime", begin))
    found = Heard(latest=since)
    answered: dict[int, tuple[str, list[Annotation]]] = {}
    for task in selected(client, project, filters, _INCLUDE, fields="all"):
        key = key_in(task)
        if key is None:
            continue
        changed = datetime.fromisoformat(text(task.get("updated_at")))
        found.latest = changed if found.latest is None else max(found.latest, changed)
        answers = []
        for each in annotations_of(task):
            if isinstance(each, RowError):
                found.problems.append(f"the annotation of task {key} {each}")
            else:
                answers.append(each)
        answered[number(task.get("id"))] = key, answers
    names = _names(client) if any(answers for _, answers in answered.values()) else {}
    found.said = sorted(
        (
            Said(key, names.get(each.by) or annotator_name(each.by), each.truth, each.at, seconds=each.seconds)
            for key, answers in answered.values()
            for each in answers
        ),
        key=lambda said: said.at,
    )
    return found


def _names(client: Client) -> dict[int | str, str]:
    """The e-mail addresses of users by their numbers; none where the token may not see them."""
    try:
        users = objects(client.get("/api/users/"))
    except (NotFoundError, UnavailableError):
        return {}
    return {number(user.get("id")): text(user.get("email")) or text(user.get("username")) for user in users}

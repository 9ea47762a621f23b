"""Taking tasks, answering them, giving them back, and looking at what one said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from starlette.concurrency import run_in_threadpool

from opmon.config import MonitorSettings
from opmon.labels.queue import Answer, Known
from opmon.store import handing_out
from opmon.types import Task
from opmon.web.api.asking import Labeller, Somebody, TheSite
from opmon.web.api.models import (
    Answers,
    GiveBack,
    GivenBack,
    RecordedOut,
    SaidList,
    SaidOut,
    Take,
    TakenOut,
    TaskOut,
)
from opmon.web.fields import fields_of
from opmon.web.guide import classes_of, mark_of, progress_out
from opmon.web.identity import Person
from opmon.web.pictures import for_browser
from opmon.web.refused import Refused
from opmon.web.site import Site

router = APIRouter(tags=["tasks"])


@router.post("/monitors/{monitor}/take")
def take(site: TheSite, person: Labeller, monitor: str, body: Take) -> TakenOut:
    """Take tasks to answer; they are yours for a while (`labels.lease`), then others may have them.

    What you took and have not answered comes first, so that a client that forgot its tasks gets them again.
    """
    settings = site.monitor_for(person, monitor)
    taken = site.queue.take(person.name, settings.name, body.count)
    usual = classes_of(site, settings)
    tasks = [_task_out(settings, task, usual) for task in taken.tasks]
    return TakenOut(tasks=tasks, classes_mark=mark_of(usual), progress=progress_out(taken.progress, person))


@router.post("/answers")
async def answer(site: TheSite, person: Labeller, body: Answers) -> RecordedOut:
    """Say what tasks are. What is not refused is safe when this returns.

    Sent again with the same `at`, an answer counts once; another answer to the same task corrects the last one, which
    is kept.
    """
    foreign = {}
    if person.monitors is not None:
        foreign = await run_in_threadpool(_foreign, site, person, [each.key for each in body.answers])
    own = [each for each in body.answers if each.key not in foreign]
    refused = await site.answers.answer(
        person.name,
        [Answer(each.key, each.truth, each.why, each.seconds, each.at) for each in own],
        Known(person.by, person.origin),
    )
    return RecordedOut(recorded=len(own) - len(refused), refused={**refused, **foreign})


@router.post("/give-back")
def give_back(site: TheSite, person: Labeller, body: GiveBack) -> GivenBack:
    """Give tasks back that you will not answer, so that others need not wait."""
    return GivenBack(given_back=site.queue.give_back(person.name, body.keys))


@router.get("/monitors/{monitor}/said")
def said(site: TheSite, person: Labeller, monitor: str, last: Annotated[int, Query(ge=1, le=100)] = 20) -> SaidList:
    """What you said lately, newest first."""
    settings = site.monitor_for(person, monitor)
    usual = classes_of(site, settings)
    return SaidList(
        said=[
            SaidOut(task=_task_out(settings, each.task, usual), truth=each.truth, why=each.why, at=each.at)
            for each in site.queue.said(person.name, settings.name, last)
        ],
        classes_mark=mark_of(usual),
    )


@router.get("/tasks/{key}/pictures/{field:path}", response_class=Response)
def picture(site: TheSite, person: Somebody, key: Annotated[str, Path(max_length=60)], field: str) -> Response:
    """A part of an input as a picture; numbers become one, and whatever browsers cannot show becomes a PNG."""
    with site.store.read() as connection:
        found = handing_out.cell(connection, key, field)
    if found is None or found.monitor not in site.settings.monitors or not person.sees(found.monitor):
        raise Refused(404, f"there is no task {key[:60]!r} for you with a picture in {field[:100]!r}")
    content, media_type = for_browser(found.value)
    return Response(content, media_type=media_type, headers={"cache-control": "private, max-age=3600"})


def _foreign(site: Site, person: Person, keys: Sequence[str]) -> dict[str, str]:
    """The tasks that are not for somebody, each with what they are told of it."""
    with site.store.read() as connection:
        monitors = handing_out.monitors_of(connection, keys)
    return {key: f"there is no task {key[:60]} for you" for key in keys if not person.sees(monitors.get(key, ""))}


def _task_out(settings: MonitorSettings, task: Task, usual: Sequence[str]) -> TaskOut:
    return TaskOut(
        key=task.key,
        monitor=task.monitor,
        round=task.round,
        input_id=task.input_id,
        fields=fields_of(settings, task.key, task.payload),
        classes=list(task.classes) if task.classes and tuple(task.classes) != tuple(usual) else None,
        prediction=task.prediction if settings.labels.show_prediction and settings.judged_column is None else None,
        due_at=task.due_at,
    )

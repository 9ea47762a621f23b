"""What rules raised: looking at events, taking them on, sending them again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from opmon.queries.events import newest_events
from opmon.web.acts import acknowledged, replayed
from opmon.web.api.asking import Operator, TheSite, Watcher
from opmon.web.api.models import Taken, Text
from opmon.web.api.views.events import AcknowledgedOut, EventOut, EventsOut, ReplayedOut

router = APIRouter(tags=["events"])

EventId = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]


class Acknowledge(Taken):
    note: Text | None = None
    """What is done about it."""


@router.get("/monitors/{monitor}/events")
def events(
    site: TheSite,
    person: Watcher,
    monitor: str,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    open: Annotated[bool, Query(description="only those that nobody has taken on")] = False,
) -> EventsOut:
    """The newest events of a monitor."""
    site.monitor_for(person, monitor)
    with site.store.read() as connection:
        found = newest_events(connection, monitor, limit, only_open=open)
    return EventsOut(events=[EventOut.model_validate(each) for each in found])


@router.post("/events/{event}/acknowledge")
def acknowledge(site: TheSite, person: Operator, event: EventId, body: Acknowledge) -> AcknowledgedOut:
    """Say that you deal with an event, so that it asks for nobody any more."""
    new, by = acknowledged(site, person, event, body.note)
    return AcknowledgedOut(new=new, by=by)


@router.post("/events/{event}/replay")
def replay(site: TheSite, person: Operator, event: EventId) -> ReplayedOut:
    """Have an event sent again to every action that has not taken it; the next run does it."""
    return ReplayedOut(deliveries=replayed(site, person, event))

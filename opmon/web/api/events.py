"""What rules raised: looking at events, taking them on, sending them again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from opmon.errors import NotFoundError
from opmon.queries.events import event as event_of
from opmon.queries.events import newest_events
from opmon.store import audit, outbox
from opmon.store.audit import Act
from opmon.web.api.asking import Operator, TheSite, Watcher
from opmon.web.api.models import Taken, Text
from opmon.web.api.views.events import AcknowledgedOut, EventOut, EventsOut, ReplayedOut
from opmon.web.identity import Person
from opmon.web.refused import Refused
from opmon.web.site import Site

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
    monitor, now = _monitor_of(site, person, event), site.clock()
    with site.store.write() as connection:
        new = outbox.acknowledge(connection, event, person.name, body.note, now)
        if new:
            audit.note(connection, person.did(Act.ACKNOWLEDGED, now, event, monitor))
    return AcknowledgedOut(new=new)


@router.post("/events/{event}/replay")
def replay(site: TheSite, person: Operator, event: EventId) -> ReplayedOut:
    """Have an event sent again to every action that has not taken it; the next run does it."""
    monitor, now = _monitor_of(site, person, event), site.clock()
    with site.store.write() as connection:
        deliveries = outbox.replay(connection, event, now)
        if deliveries:
            audit.note(connection, person.did(Act.REPLAYED, now, event, monitor))
    return ReplayedOut(deliveries=deliveries)


def _monitor_of(site: Site, person: Person, event: str) -> str:
    """The monitor of an event; a refusal where somebody may not see it: to them the event does not exist."""
    try:
        with site.store.read() as connection:
            monitor = event_of(connection, event).monitor
    except NotFoundError:
        monitor = None
    if monitor is None or not person.sees(monitor):
        raise Refused(404, f"there is no event {event!r} for you")
    return monitor

"""What operators do about events: the same from a page's form and over the API."""

from __future__ import annotations

from opmon.errors import NotFoundError
from opmon.queries.events import event as event_of
from opmon.store import audit, outbox
from opmon.store.audit import Act
from opmon.web.identity import Person
from opmon.web.refused import Refused
from opmon.web.site import Site


def acknowledged(site: Site, person: Person, event: str, note: str | None) -> tuple[bool, str]:
    """Say that somebody deals with an event; False where somebody did before, and who it is that does."""
    monitor, now = monitor_of(site, person, event), site.clock()
    with site.store.write() as connection:
        new = outbox.acknowledge(connection, event, person.name, note, now)
        if new:
            audit.note(connection, person.did(Act.ACKNOWLEDGED, now, event, monitor))
        return new, event_of(connection, event).acknowledged_by or ""


def replayed(site: Site, person: Person, event: str) -> int:
    """Have an event sent again to every action that has not taken it; gives to how many."""
    monitor, now = monitor_of(site, person, event), site.clock()
    with site.store.write() as connection:
        deliveries = outbox.replay(connection, event, now)
        if deliveries:
            audit.note(connection, person.did(Act.REPLAYED, now, event, monitor))
    return deliveries


def monitor_of(site: Site, person: Person, event: str) -> str:
    """The monitor of an event; a refusal where somebody may not see it: to them the event does not exist."""
    try:
        with site.store.read() as connection:
            monitor = event_of(connection, event).monitor
    except NotFoundError:
        monitor = None
    if monitor is None or not person.sees(monitor):
        raise Refused(404, f"there is no event {event!r} for you")
    return monitor

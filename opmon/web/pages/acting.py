"""What operators do on pages, by plain forms: scripts only spare them the reload."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse

from opmon.web.acts import acknowledged, monitor_of, replayed
from opmon.web.forms import FORM
from opmon.web.pages.asking import Operator, TheSite
from opmon.web.refused import Refused
from opmon.web.root import under

router = APIRouter()

LONGEST_NOTE = 500


@router.post("/monitors/{monitor}/events/{event}")
def act(
    request: Request,
    site: TheSite,
    person: Operator,
    monitor: str,
    event: Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[^\x00]*$")],
) -> RedirectResponse:
    """Take an event on, or have it sent again."""
    form: dict[str, str] = request.scope[FORM]
    if monitor_of(site, person, event) != monitor:
        raise Refused(404, f"{monitor[:100]} has no event {event!r}")
    if form.get("act") == "acknowledge":
        _, by = acknowledged(site, person, event, form.get("note", "").strip()[:LONGEST_NOTE] or None)
        if by != person.name:
            raise Refused(409, f"{by} took this event on before you; what you wrote was not kept")
    elif form.get("act") == "replay":
        replayed(site, person, event)
    else:
        raise Refused(422, "say what is to be done about the event: acknowledge or replay")
    return RedirectResponse(under(f"/monitors/{quote(monitor)}#event-{quote(event)}"), 303)

"""Who looks at a page."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from opmon.web.forms import FORM, fields_of
from opmon.web.identity import Person
from opmon.web.refused import Refused
from opmon.web.site import Site, site_of


async def _site(request: Request) -> Site:
    return site_of(request)


async def somebody(request: Request) -> Person:
    door = site_of(request).door
    return door.whoever(request) if door.knows(request) else await run_in_threadpool(door.whoever, request)


async def watcher(person: Annotated[Person, Depends(somebody)]) -> Person:
    if not person.watches:
        raise Refused(403, f"{person.name} is an annotator, who labels and does not see how models do")
    return person


async def operator(request: Request) -> Person:
    """Whoever sends a form, with its token against other sites among its fields, and may act."""
    request.scope[FORM] = fields_of(await request.body())
    person = await run_in_threadpool(site_of(request).door.whoever, request)
    if not person.acts:
        raise Refused(403, f"{person.name} is a {person.role}, who may look and not act; operators may")
    return person


TheSite = Annotated[Site, Depends(_site)]
Somebody = Annotated[Person, Depends(somebody)]
Watcher = Annotated[Person, Depends(watcher)]
Operator = Annotated[Person, Depends(operator)]

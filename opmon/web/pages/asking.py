"""Who looks at a page."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from opmon.web.identity import Person
from opmon.web.site import Site, site_of


async def _site(request: Request) -> Site:
    return site_of(request)


async def _person(request: Request) -> Person:
    door = site_of(request).door
    return door.whoever(request) if door.knows(request) else await run_in_threadpool(door.whoever, request)


TheSite = Annotated[Site, Depends(_site)]
Somebody = Annotated[Person, Depends(_person)]

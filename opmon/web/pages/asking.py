"""Who looks at a page."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from opmon.web.identity import Person
from opmon.web.site import Site, site_of


async def _site(request: Request) -> Site:
    return site_of(request)


def _person(request: Request) -> Person:
    return site_of(request).door.whoever(request)


TheSite = Annotated[Site, Depends(_site)]
Somebody = Annotated[Person, Depends(_person)]

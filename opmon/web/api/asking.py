"""Who asks, as endpoints declare it; the OpenAPI description says how to tell."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, APIKeyHeader, HTTPBearer
from starlette.concurrency import run_in_threadpool

from opmon.web.cookies import COOKIE
from opmon.web.identity import NAME_HEADER, Person
from opmon.web.refused import Refused
from opmon.web.site import Site, site_of

_BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="from `opmon annotators add NAME`")
_SESSION = APIKeyCookie(
    name=COOKIE,
    auto_error=False,
    scheme_name="session",
    description="of a browser that is signed in; there its name goes on with _ and a mark of the host and port",
)
_NAME = APIKeyHeader(
    name=NAME_HEADER, auto_error=False, scheme_name="name", description="on this machine, while nobody has a token"
)


async def _site(request: Request) -> Site:
    return site_of(request)


async def somebody(
    request: Request,
    token: Annotated[object, Security(_BEARER)],
    session: Annotated[object, Security(_SESSION)],
    name: Annotated[object, Security(_NAME)],
) -> Person:
    door = site_of(request).door
    return door.whoever(request) if door.knows(request) else await run_in_threadpool(door.whoever, request)


async def labeller(person: Annotated[Person, Depends(somebody)]) -> Person:
    if not person.labels:
        raise Refused(403, f"{person.name} is a {person.role}, who may look and not label")
    return person


async def watcher(person: Annotated[Person, Depends(somebody)]) -> Person:
    if not person.watches:
        raise Refused(403, f"{person.name} is an annotator, who labels and does not see how models do")
    return person


async def operator(person: Annotated[Person, Depends(somebody)]) -> Person:
    if not person.acts:
        raise Refused(403, f"{person.name} is a {person.role}, who may look and not act; operators may")
    return person


TheSite = Annotated[Site, Depends(_site)]
Somebody = Annotated[Person, Depends(somebody)]
Labeller = Annotated[Person, Depends(labeller)]
Watcher = Annotated[Person, Depends(watcher)]
Operator = Annotated[Person, Depends(operator)]

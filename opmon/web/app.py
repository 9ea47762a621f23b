"""The application: pages, the API, and the answers to what goes wrong."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

import opmon
from opmon.errors import InputError, LeaseHeld, NotFoundError, OpmonError, UnavailableError
from opmon.redaction import redacted
from opmon.web import access, assets
from opmon.web.api import events, monitors, robustness, tasks, watching
from opmon.web.api.models import Failure
from opmon.web.guards import Application, Guarded, SideBySide
from opmon.web.identity import Person
from opmon.web.pages import (
    acting,
    documents,
    label,
    monitor,
    overview,
    plan,
    probes,
    provider,
    round,
    signing_in,
    versions,
)
from opmon.web.pages import robustness as robustness_page
from opmon.web.refused import Refused
from opmon.web.root import within
from opmon.web.site import Site, Sited, site_of
from opmon.web.squeezed import Squeezed
from opmon.web.templating import page

log = logging.getLogger(__name__)

API = "/api/v1"
_LONGEST = 300
_RETRY_SECONDS = 5
_FAILURES: dict[int | str, dict[str, object]] = {
    401: {"model": Failure, "description": "who asks is not known"},
    403: {"model": Failure, "description": "who asks may not do this"},
    404: {"model": Failure, "description": "there is no such thing for who asks"},
    413: {"model": Failure, "description": "the body is too large"},
    422: {"model": Failure, "description": "what was sent cannot be right"},
    429: {"model": Failure, "description": "too many requests of one person, or wrong tokens from one address"},
    503: {"model": Failure, "description": "the database does not answer; try again"},
}


_FOR_PROGRAMS = ("/metrics", "/healthz", "/readyz")
_PAGES = (
    signing_in,
    provider,
    overview,
    monitor,
    acting,
    round,
    plan,
    versions,
    robustness_page,
    documents,
    label,
    probes,
)


def application(site: Site, at_once: int | None = None) -> Application:
    """All pages and endpoints of a site, behind what guards them.

    ``at_once``: so many requests are worked on at a time, where the server itself works on more.
    """
    prefix = urlsplit(site.settings.web.url or "").path.rstrip("/")
    pages: Application = Squeezed(Sited(_routed(), site))
    if at_once is not None:
        pages = SideBySide(pages, at_once)
    return Guarded(pages, site.settings.web.max_body, prefix, site.mlflow_pages, site.clock)


@functools.cache
def _routed() -> FastAPI:
    """All pages and endpoints: the same for every site, which comes with each request."""
    app = FastAPI(
        title="opmon",
        version=opmon.__version__,
        description="How monitored models do, and the labels that tell it: take tasks, answer, see what comes of it.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # these pages fetch scripts from elsewhere
        redoc_url=None,
    )
    for router in (monitors.router, tasks.router, watching.router, robustness.router, events.router):
        app.include_router(router, prefix=API, responses=_FAILURES)
    for module in _PAGES:
        app.include_router(module.router, include_in_schema=False)
    app.add_api_route("/static/{version}/{name}", _static, methods=["GET", "HEAD"], include_in_schema=False)
    access.require_stated(app.routes)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return app


async def _static(version: str, name: str) -> Response:
    if version != assets.version() or name not in assets.assets():
        raise Refused(404, "there is no such file")
    content, media_type = assets.assets()[name]
    return Response(content, media_type=media_type, headers={"cache-control": "public, max-age=31536000, immutable"})


def _answered(request: Request, refused: Refused) -> Response:
    """An answer in the form that was asked for: JSON for the API, a page for people."""
    path = within(request.url.path)
    headers = {"retry-after": str(refused.retry_after)} if refused.retry_after is not None else {}
    if path.startswith("/api/") or path in _FOR_PROGRAMS:
        if refused.status == 401:
            headers["www-authenticate"] = "Bearer"
        told: dict[str, object] = {"error": refused.words}
        if refused.problems:
            told["problems"] = [{"at": at, "problem": problem} for at, problem in refused.problems]
        return Response(json.dumps(told), refused.status, headers, "application/json")
    if refused.status == 401:
        return RedirectResponse(signing_in.address(path), 303)
    answer = page("refused.html", refused.status, words=refused.words, code=refused.status)
    answer.headers.update(headers)
    return answer


async def _refused(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, Refused)
    if exc.status in (403, 429) or (exc.status == 401 and "authorization" in request.headers):
        person: Person | None = request.scope.get("opmon.person")
        who, by = ("", "") if person is None else (person.name, person.by)
        site = site_of(request)
        about = f"{request.method} {request.url.path[:150]}: {exc.words}"
        site.audited.refused(who, by, site.door.origin(request), about)
    return _answered(request, exc)


async def _invalid(request: Request, exc: Exception) -> Response:
    """What was sent is not what the endpoint takes: where, what was given, what is allowed."""
    assert isinstance(exc, RequestValidationError)
    problems = [_where_and_why(error) for error in exc.errors()[:20]]
    at, why = problems[0]
    return _answered(request, Refused(422, f"{at}: {why}", problems=problems))


def _where_and_why(error: Mapping[str, Any]) -> tuple[str, str]:
    """Where something is wrong in what was sent, and what; with what was given, where that is short."""
    if error["type"] == "json_invalid":
        return "body", f"is no JSON: {error.get('ctx', {}).get('error', '')}"[:_LONGEST]
    at = ".".join(str(each) for each in error["loc"][1:]) or str(error["loc"][0])
    words, given = str(error["msg"]).removeprefix("Value error, "), error.get("input")
    shown = f" (given: {given!r:.60})" if isinstance(given, str | int | float) else ""
    return at, f"{words}{shown}"[:_LONGEST]


async def _http(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    words = {404: "nothing has this address", 405: f"{request.method} is not answered here"}
    answer = _answered(request, Refused(exc.status_code, words.get(exc.status_code, str(exc.detail)[:_LONGEST])))
    answer.headers.update(exc.headers or {})
    return answer


async def _told(request: Request, exc: Exception) -> Response:
    """An error of opmon's own: its message is made to be read."""
    if isinstance(exc, UnavailableError | LeaseHeld):
        log.warning("%s", exc)
        words = "the database does not answer at the moment; nothing is lost, try again"
        return _answered(request, Refused(503, words, retry_after=_RETRY_SECONDS))
    if isinstance(exc, NotFoundError):
        return _answered(request, Refused(404, redacted(str(exc))[:_LONGEST]))
    if isinstance(exc, InputError):
        return _answered(request, Refused(422, redacted(str(exc))[:2000]))
    return await _fault(request, exc)


async def _fault(request: Request, exc: Exception) -> Response:
    log.error("a request to %s failed", request.url.path[:200], exc_info=exc)
    return _answered(request, Refused(500, "a fault in opmon: its log says more; nothing of this request was kept"))


_HANDLERS: dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    Refused: _refused,
    RequestValidationError: _invalid,
    HTTPException: _http,
    OpmonError: _told,
    Exception: _fault,
}

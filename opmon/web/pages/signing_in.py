"""Signing in with a token, or with a name where nobody has a token; and signing out."""

from __future__ import annotations

import hmac
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from opmon.web.cookies import forget, keep_signed_in, over_https, sessions_in
from opmon.web.forms import fields_of
from opmon.web.identity import Person
from opmon.web.refused import Refused
from opmon.web.root import under
from opmon.web.secrets import csrf_of
from opmon.web.sent import require_same_site
from opmon.web.site import Site, site_of
from opmon.web.templating import page

router = APIRouter()

_HOME = "/"


def address(path: str) -> str:
    """The page where one signs in and goes on to ``path``."""
    return under(f"/sign-in?next={quote(path)}")


@router.get("/sign-in")
def form(request: Request, next: str = _HOME, out: bool = False) -> HTMLResponse:
    """The form; a link that somebody was invited with fills it in by itself. ``out``: somebody has just signed out."""
    return page_of(site_of(request), inside(next), is_out=out)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    given = fields_of(await request.body())
    return await run_in_threadpool(_signed_in, site_of(request), request, given)


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    given = fields_of(await request.body())
    return await run_in_threadpool(_signed_out, site_of(request), request, given)


def _signed_in(site: Site, request: Request, given: dict[str, str]) -> Response:
    require_same_site(request, site.settings.web.address)
    target = inside(given.get("next", _HOME))
    try:
        person = _person(site, request, given)
        secret, seconds = site.door.open_session(person)
    except Refused as exc:
        site.audited.refused("", "", site.door.origin(request), f"POST /sign-in: {exc.words}")
        answer = page_of(site, target, exc.words, exc.status)
        if exc.retry_after is not None:
            answer.headers["retry-after"] = str(exc.retry_after)
        return answer
    done = RedirectResponse(under(target), 303)
    keep_signed_in(done, request, secret, seconds, over_https(site.settings.web, request))
    return done


def _person(site: Site, request: Request, given: dict[str, str]) -> Person:
    if site.door.asks_for_tokens():
        return site.door.by_token(request, given.get("token", "").strip())
    return site.door.by_name(request, given.get("name", ""))


def _signed_out(site: Site, request: Request, given: dict[str, str]) -> Response:
    require_same_site(request, site.settings.web.address)
    secrets, csrf = sessions_in(request), given.get("csrf", "").encode()
    if not any(hmac.compare_digest(csrf, csrf_of(each).encode()) for each in secrets):
        raise Refused(403, "this page is out of date: reload it and sign out again")
    for each in secrets:
        site.door.close_session(request, each)
    done = RedirectResponse(under("/sign-in" if site.provider is None else "/sign-in?out=1"), 303)
    forget(done, request)
    return done


def page_of(
    site: Site, target: str, problem: str | None = None, status: int = 200, is_out: bool = False
) -> HTMLResponse:
    """The page where one signs in, with what went wrong the last time."""
    provider = site.provider
    elsewhere = None if provider is None or not is_out else provider.sign_out(f"{site.settings.web.address}/sign-in")
    return page(
        "sign_in.html",
        status,
        with_token=site.door.asks_for_tokens(),
        target=target,
        problem=problem,
        provider=None if provider is None else provider.settings.shown,
        begin=under(f"/oidc/start?next={quote(target)}"),
        elsewhere=elsewhere,
    )


def inside(target: str) -> str:
    """Where to go on; nowhere outside of these pages."""
    ordinary = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return quote(target, safe="/?=&%-_.~") if ordinary else _HOME

"""Signing in at a provider of OpenID Connect: the way there, and the way back."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from opmon.attempts import counted_as
from opmon.oidc.flow import Flow, Known, new_secret
from opmon.oidc.untrusted import Unreachable, Untrusted
from opmon.web.cookies import keep_signed_in, over_https
from opmon.web.pages.signing_in import inside, page_of
from opmon.web.refused import Refused
from opmon.web.root import under
from opmon.web.site import Site, site_of
from opmon.web.templating import page

log = logging.getLogger(__name__)
router = APIRouter()

COOKIE = "opmon_oidc"
"""Holds the secret of one sign-in, and where to go on behind it, while the browser is away."""
_AWAY_SECONDS = 600


@router.get("/oidc/start")
def start(request: Request, next: str = "/") -> Response:
    """Send the browser to the provider, with what it must bring back."""
    site, secret, target = site_of(request), new_secret(), inside(next)
    flow = _flow(site)
    try:
        done = RedirectResponse(flow.address(secret), 303)
    except Unreachable as exc:
        log.warning("nobody can sign in: %s", exc)
        return page_of(site, target, str(exc), 503)
    kept = f"{secret}.{target}"
    secure = over_https(site.settings.web, request)
    done.set_cookie(
        COOKIE, kept, max_age=_AWAY_SECONDS, httponly=True, samesite="lax", secure=secure, path=under("/oidc")
    )
    return done


@router.get("/oidc/back")
def back(request: Request) -> Response:
    """Let in whom the provider knows.

    The answer is a page that goes on by itself: browsers do not send the session's cookie with a request that another
    site began, to which they count where it sends them on.
    """
    site = site_of(request)
    flow = _flow(site)
    secret, _, target = request.cookies.get(COOKIE, "").partition(".")
    target = inside(target)
    try:
        known = _known(site, request, flow, secret, {**request.query_params})
        person = site.door.by_provider(request, known.name, known.groups, flow.provider.settings)
        session, seconds = site.door.open_session(person, known.groups)
    except Refused as exc:
        site.audited.refused("", "oidc", site.door.origin(request), f"GET /oidc/back: {exc.words}")
        answer: Response = page_of(site, target, exc.words, exc.status)
        answer.headers.update({} if exc.retry_after is None else {"retry-after": str(exc.retry_after)})
    else:
        answer = page("signed_in.html", target=under(target), name=person.name)
        keep_signed_in(answer, request, session, seconds, over_https(site.settings.web, request))
    answer.delete_cookie(COOKIE, path=under("/oidc"), httponly=True, samesite="lax")
    return answer


def _known(site: Site, request: Request, flow: Flow, secret: str, given: Mapping[str, str]) -> Known:
    """Who came back; a refusal where that is not to be believed.

    Those count like wrong tokens, but for sign-ins that were not begun in their browser: they cost nothing, and anybody
    behind the same proxy could close its address to all with them.
    """
    try:
        flow.require_begun(secret, given)
    except Untrusted as exc:
        raise Refused(401, f"{exc}") from exc
    address = counted_as(site.door.origin(request))
    closed = site.door.closed(address, "too many sign-ins from here came to nothing: try again in {} s")
    try:
        return flow.known(secret, given)
    except Untrusted as exc:
        if closed is not None:
            raise closed from exc
        site.door.attempts.was_wrong(address)
        raise Refused(401, f"{exc}") from exc
    except Unreachable as exc:
        log.warning("nobody can sign in: %s", exc)
        raise Refused(503, f"{exc}") from exc


def _flow(site: Site) -> Flow:
    if site.provider is None:
        raise Refused(404, "people sign in here with tokens, at no provider (web: oidc)")
    return Flow(site.provider, f"{site.settings.web.address}/oidc/back")

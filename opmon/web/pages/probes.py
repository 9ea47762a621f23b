"""``/metrics``, ``/healthz`` and ``/readyz`` beside the pages."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from opmon.errors import UnavailableError
from opmon.health.server import answered, has_token
from opmon.web.pages.asking import TheSite
from opmon.web.refused import Refused
from opmon.web.root import within
from opmon.web.site import Site

router = APIRouter()
SCRAPER = "prometheus"
"""Who asks where nobody needs a token."""


@router.api_route("/metrics", methods=["GET", "HEAD"])
@router.api_route("/healthz", methods=["GET", "HEAD"])
@router.api_route("/readyz", methods=["GET", "HEAD"])
async def probe(request: Request, site: TheSite) -> Response:
    """The probes answer everybody; names and numbers are for those who may see the monitors."""
    return await run_in_threadpool(_answer, request, site)


def _answer(request: Request, site: Site) -> Response:
    health, path = site.health, within(request.url.path)
    headers = {name.lower(): value for name, value in request.headers.raw}
    sees, refusal = True, None
    if not has_token(health, headers):
        try:
            sees = (path == "/metrics" or health.can_ask()) and _sees_all(request, site)
        except Refused as exc:
            sees, refusal = False, exc
        except UnavailableError:
            if path == "/metrics":
                raise
            sees = False  # whether the process lives is told whatever its database does
    if path == "/metrics" and not (sees and health.settings.metrics.enabled):
        raise refusal or Refused(403, "the metrics are for those who may see all monitors")
    found = answered(health, path, request.url.query, headers, names=sees, metrics=sees)
    assert found is not None
    return Response(found.body, found.status, media_type=found.media_type)


def _sees_all(request: Request, site: Site) -> bool:
    """Whether whoever asks may see all monitors; where nobody has a token, whoever is on this machine may."""
    if "authorization" in request.headers or request.cookies:
        person = site.door.whoever(request)
    else:
        person = site.door.by_name(request, SCRAPER)
    return person.watches and person.monitors is None

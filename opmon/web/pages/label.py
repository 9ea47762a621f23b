"""The pages of annotators: what there is to label, and the page where they label."""

from __future__ import annotations

import json

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from opmon.web.guide import guide_of, line_of, me_of
from opmon.web.pages.asking import Somebody, TheSite
from opmon.web.templating import page

router = APIRouter()


@router.get("/label")
def overview(site: TheSite, person: Somebody) -> HTMLResponse:
    """The monitors, with what waits in each."""
    seen = site.monitors_of(person)
    lines = [line_of(site, each, person) for each in seen]
    lines.sort(key=lambda line: -line.progress.open)
    return page("overview.html", lines=lines, person=person)


@router.get("/label/{monitor}")
def labelling(site: TheSite, person: Somebody, monitor: str) -> HTMLResponse:
    """One task after the other."""
    settings = site.monitor_for(person, monitor)
    guide = guide_of(site, settings, person)
    begin = {"me": me_of(person).model_dump(mode="json"), "guide": guide.model_dump(mode="json")}
    return page("label.html", guide=guide, person=person, begin=json.dumps(begin))

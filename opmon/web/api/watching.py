"""How models do: what the pages on monitors show."""

from __future__ import annotations

from fastapi import APIRouter

from opmon.web.api.asking import TheSite, Watcher
from opmon.web.api.views import LineOut, LinesOut
from opmon.web.watched import lines_for

router = APIRouter(tags=["watching"])


@router.get("/status")
def status(site: TheSite, person: Watcher) -> LinesOut:
    """All monitors that you may see: those with an alarm first, then those that need a person."""
    return LinesOut(monitors=[LineOut.model_validate(line) for line in lines_for(site, person)])

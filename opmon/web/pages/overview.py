"""The first page: all monitors, and what needs a person."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from opmon.queries import LineView
from opmon.web import words
from opmon.web.charts import sparkline
from opmon.web.pages.asking import Somebody, TheSite
from opmon.web.root import under
from opmon.web.site import Site
from opmon.web.templating import page
from opmon.web.watched import lines_for

router = APIRouter()

LATE = timedelta(minutes=2)
"""A run that has not begun so long after it was to is called overdue."""
PRESSING = 6
"""So many needs are listed above the table; the others stand in their lines."""


@router.get("/")
def monitors(site: TheSite, person: Somebody) -> Response:
    """All monitors; annotators go on to what there is to label."""
    if not person.watches:
        return RedirectResponse(under("/label"), 303)
    lines = lines_for(site, person)
    needs = [(line, need, times) for line in lines for need, times in words.told_once(line.needs)]
    return page(
        "monitors.html",
        person=person,
        lines=lines,
        late=site.clock() - LATE,
        needs=needs[:PRESSING],
        more_needs=len(needs) - PRESSING,
        tally=words.tally_of(lines),
        waiting=sum(line.queue.open for line in lines),
        sparks={line.name: _spark(site, line) for line in lines},
    )


def _spark(site: Site, line: LineView) -> Markup:
    settings = site.settings.monitors[line.name]
    quantity = settings.quantity if line.latest is None else line.latest.estimate.quantity
    alt = words.spark_words(line.past, quantity) if line.past else ""
    return sparkline(line.past, alt, quantity=quantity, line=site.thresholds[line.name])

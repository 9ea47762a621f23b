"""One monitor: how it stands and why, its history, what was raised, what it got wrong, how it is configured."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from opmon.quantities import Quantity
from opmon.queries.timeline import SHOWN_ROUNDS
from opmon.stages.drift import summary_of
from opmon.web import words
from opmon.web.charts import NARROW, WIDE, marks_of, timeline, told
from opmon.web.pages.asking import TheSite, Watcher
from opmon.web.pages.overview import LATE
from opmon.web.root import under
from opmon.web.templating import page
from opmon.web.watched import ROUNDS, Watched, as_yaml, rounds_of, watched

router = APIRouter()

_MOST_ROUNDS = 50


@router.get("/monitors/{monitor}")
def monitor(site: TheSite, person: Watcher, monitor: str) -> HTMLResponse:
    """All of it on one page."""
    settings = site.monitor_for(person, monitor)
    seen = watched(site, settings)
    drift = None if seen.latest is None else summary_of(seen.latest.drift)
    return page(
        "monitor.html",
        person=person,
        view=seen.view,
        watch=settings.watch,
        threshold=seen.threshold,
        events=seen.events,
        failures=seen.failures,
        groups=() if seen.view.latest is None else seen.view.latest.failure_groups,
        latest=seen.latest,
        slices=[] if seen.view.latest is None else words.slices_of(seen.view.latest),
        rolled_slices=[] if seen.view.rolling is None else words.rolled_slices_of(seen.view.rolling),
        needs=words.told_once(seen.view.needs),
        drawn=len(seen.points) if len(seen.points) == SHOWN_ROUNDS < seen.view.rounds else 0,
        charts=_charts(seen, settings.quantity),
        has_rolling=any(point.rolling is not None for point in seen.points),
        quantity=settings.quantity,
        meaning=words.MEANING[seen.view.status],
        drift=drift,
        older=seen.view.newest[-1].number if len(seen.view.newest) == ROUNDS else None,
        configuration=as_yaml(settings),
        labels=person.labels,
        late=site.clock() - LATE,
        now=site.clock(),
        has_robustness=settings.robustness is not None,
    )


@router.get("/monitors/{monitor}/rounds")
def all_rounds(
    site: TheSite, person: Watcher, monitor: str, before: Annotated[int | None, Query(ge=2)] = None
) -> HTMLResponse:
    """Its rounds, so many at a time."""
    settings = site.monitor_for(person, monitor)
    found = rounds_of(site, settings, _MOST_ROUNDS, before)
    older = found[-1].number if found and found[-1].number > 1 else None
    return page("rounds.html", person=person, name=monitor, rounds=found, before=before, older=older)


def _charts(seen: Watched, quantity: Quantity) -> list[Markup]:
    """One for large screens and one for small ones; rounds that wait for labels are there with what is expected."""
    waiting, line = seen.view.foreseen.waiting, seen.threshold
    if not seen.points and not waiting:
        return []
    marks = marks_of(seen.points, waiting, under(f"/monitors/{quote(seen.view.name)}/rounds/"))
    alt = told(marks, quantity, line)
    return [timeline(marks, alt, quantity=quantity, line=line, size=size) for size in (WIDE, NARROW)]

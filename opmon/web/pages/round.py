"""One round: what it asked, what came of it, what the rules said, what the model got wrong."""

from __future__ import annotations

from fastapi import APIRouter, Path
from fastapi.responses import HTMLResponse

from opmon.queries.rounds import round_view
from opmon.stages.drift import summary_of
from opmon.store import rounds
from opmon.web import words
from opmon.web.failures import failures_of
from opmon.web.links import run_in_mlflow
from opmon.web.pages.asking import TheSite, Watcher
from opmon.web.templating import page

router = APIRouter()


@router.get("/monitors/{monitor}/rounds/{number}")
def one_round(site: TheSite, person: Watcher, monitor: str, number: int = Path(ge=1, lt=2**31)) -> HTMLResponse:
    """All of it on one page."""
    settings, now = site.monitor_for(person, monitor), site.clock()
    with site.store.read() as connection:
        round_ = rounds.get(connection, monitor, number)
        view = round_view(connection, settings.watch, round_, now)
        failures = failures_of(connection, settings, round_)
        last = rounds.count(connection, monitor)
    return page(
        "round.html",
        person=person,
        name=monitor,
        view=view,
        plan=round_.plan,
        slices=words.slices_of(view),
        closed_at=round_.closed_at,
        started_at=round_.starts_at,
        failures=failures,
        drift=summary_of(round_.drift),
        run=run_in_mlflow(site, round_.run_id),
        run_id=round_.run_id,
        last=last,
        now=now,
    )

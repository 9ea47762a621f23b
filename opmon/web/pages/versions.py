"""The model versions of a monitor side by side, and two of them against each other."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from opmon.quantities import Quantity
from opmon.queries.versions import VersionView
from opmon.web import words
from opmon.web.charts import whiskers
from opmon.web.pages.asking import TheSite, Watcher
from opmon.web.templating import page
from opmon.web.versions import against, chosen
from opmon.web.watched import versions_of

router = APIRouter()


@router.get("/monitors/{monitor}/versions")
def versions(
    site: TheSite, person: Watcher, monitor: str, first: str | None = None, second: str | None = None
) -> HTMLResponse:
    """All of them, and by how much the second is better; unless others are asked for, the newest against the last."""
    settings = site.monitor_for(person, monitor)
    found = versions_of(site, settings)
    one, two = chosen(found, first, second)
    return page(
        "versions.html",
        person=person,
        name=monitor,
        quantity=settings.quantity,
        versions=found,
        chart=_charts(found, settings.quantity),
        unknown=[name for name, each in ((first, one), (second, two)) if name and each is None],
        one=one,
        two=two,
        verdict=None if one is None or two is None or one is two else against(one, two, settings.quantity),
    )


def _charts(found: Sequence[VersionView], quantity: Quantity) -> list[Markup]:
    if not found:
        return []
    rows = [(f"version {each.version}", each.estimate) for each in found]
    alt = f"{quantity.caption} by version: " + "; ".join(
        f"version {each.version} {words.interval_of(each.estimate)}" for each in found
    )
    return [whiskers(rows, alt, quantity=quantity, width=width) for width in (960, 360)]

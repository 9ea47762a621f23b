"""The model versions of a monitor side by side, and two of them against each other."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from opmon.quantities import Quantity
from opmon.queries.versions import VersionView, difference
from opmon.web import words
from opmon.web.charts import whiskers
from opmon.web.pages.asking import TheSite, Watcher
from opmon.web.templating import page
from opmon.web.watched import versions_of
from opmon.wording import points_between

router = APIRouter()


@router.get("/monitors/{monitor}/versions")
def versions(
    site: TheSite, person: Watcher, monitor: str, first: str | None = None, second: str | None = None
) -> HTMLResponse:
    """All of them, and by how much the second is better; unless others are asked for, the newest against the last."""
    settings = site.monitor_for(person, monitor)
    found = versions_of(site, settings)
    by_name = {each.version: each for each in found}
    one = by_name.get(first or "", found[1] if len(found) > 1 else None)
    two = by_name.get(second or "", found[0] if found else None)
    return page(
        "versions.html",
        person=person,
        name=monitor,
        quantity=settings.quantity,
        versions=found,
        chart=_charts(found, settings.quantity),
        one=one,
        two=two,
        verdict=None if one is None or two is None or one is two else _verdict(one, two, settings.quantity),
    )


def _charts(found: Sequence[VersionView], quantity: Quantity) -> list[Markup]:
    if not found:
        return []
    rows = [(f"version {each.version}", each.estimate) for each in found]
    alt = f"{quantity.caption} by version: " + "; ".join(
        f"version {each.version} {words.interval_of(each.estimate)}" for each in found
    )
    return [whiskers(rows, alt, quantity=quantity, width=width) for width in (960, 360)]


def _verdict(one: VersionView, two: VersionView, quantity: Quantity) -> str:
    """Which is better, in a sentence."""
    found = difference(one.estimate, two.estimate)
    better = (found.value > 0) is (quantity.better == "higher")
    by = f"{quantity.difference(found.value)} {'better' if better else 'worse'}"
    names = f"Version {two.version} is {by} than {one.version}"
    if quantity.percent:
        interval = points_between(found.low, found.high)
    else:
        interval = f"{quantity.text(found.low)} to {quantity.text(found.high)}"
    if found.tells:
        return f"{names} (the {quantity.name} differs by {interval})."
    return (
        f"The labels do not tell versions {one.version} and {two.version} apart: "
        f"the {quantity.name} differs by {interval}, which may be nothing."
    )

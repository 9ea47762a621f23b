"""How a model holds under combined perturbations: a question, tables of pairs, voxels, examples, history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from opmon.config import MonitorSettings
from opmon.errors import InputError, NotFoundError
from opmon.quantities import Quantity
from opmon.robustness.query.named import NAMED
from opmon.robustness.result import Tomography
from opmon.store.tomographies import Kept
from opmon.web.charts import NARROW, WIDE, Mark, cube, timeline, told
from opmon.web.links import run_in_mlflow
from opmon.web.pages.asking import TheSite, Watcher
from opmon.web.robust import asked, history_of, layers, one_of, pair_tables, singles, three_of
from opmon.web.root import under
from opmon.web.site import Site
from opmon.web.templating import page

router = APIRouter()

ROBUSTNESS = Quantity("robustness", share=True)
_WORST = 8
Text = Annotated[str | None, Query(max_length=2000)]
Name = Annotated[str | None, Query(max_length=300)]


@router.get("/monitors/{monitor}/robustness")
def newest(
    site: TheSite, person: Watcher, monitor: str, q: Text = None, a: Name = None, b: Name = None, c: Name = None
) -> HTMLResponse:
    """The newest tomography; where there is none, what must be done to get one."""
    settings = site.monitor_for(person, monitor)
    history = history_of(site.store, settings)
    if not history:
        return page("robustness_none.html", person=person, name=monitor, settings=settings.robustness)
    return _page(site, person, settings, history[0], history, q, (a, b, c))


@router.get("/monitors/{monitor}/robustness/{number}")
def one(
    site: TheSite,
    person: Watcher,
    monitor: str,
    number: Annotated[int, Path(ge=1, lt=2**31)],
    q: Text = None,
    a: Name = None,
    b: Name = None,
    c: Name = None,
) -> HTMLResponse:
    """That of one round."""
    settings = site.monitor_for(person, monitor)
    kept = one_of(site.store, settings, number)
    return _page(site, person, settings, kept, history_of(site.store, settings), q, (a, b, c))


def _page(
    site: Site,
    person: Watcher,
    settings: MonitorSettings,
    kept: Kept,
    history: Sequence[Kept],
    question: str | None,
    three: tuple[str | None, str | None, str | None],
) -> HTMLResponse:
    try:
        result = site.tomographies.of(kept)
    except NotFoundError as exc:
        found: dict[str, object] = {"gone": str(exc)}
    else:
        found = {"gone": None} | _all_of(site, kept, result, question, three)
    return page(
        "robustness.html",
        values=found,
        person=person,
        name=settings.name,
        kept=kept,
        summary=kept.summary,
        history=history,
        charts=_history(settings.name, history),
        question=question or "",
        run=run_in_mlflow(site, kept.run_id),
        run_id=kept.run_id,
    )


def _all_of(
    site: Site, kept: Kept, result: Tomography, question: str | None, three: Sequence[str | None]
) -> dict[str, object]:
    """What a tomography shows that is kept whole."""
    return {
        "result": result,
        "whole": site.tomographies.answer(kept, "all", _WORST),
        "suggested": _suggested(kept, result),
        "examples": site.tomographies.examples(kept),
        **_asked(site, kept, question),
        **_laid_out(result, question, three),
    }


def _asked(site: Site, kept: Kept, question: str | None) -> dict[str, object]:
    """The answer to a question; or what is wrong with it."""
    try:
        told = site.tomographies.answer(kept, question, _WORST) if question and question.strip() else None
        return {"answer": told, "problem": None}
    except InputError as exc:
        return {"answer": None, "problem": str(exc)}


def _laid_out(result: Tomography, question: str | None, three: Sequence[str | None]) -> dict[str, object]:
    """The tables of pairs and the voxels; tests that are asked about are marked."""
    try:
        mask = asked(result, question if question and question.strip() else None)
    except InputError:
        mask = asked(result, None)
    tables = {"singles": singles(result, mask), "pairs": pair_tables(result, mask)}
    found: dict[str, object] = {**tables, "cube": None, "three": None, "three_problem": None}
    if len(result.space.names) < 3 or result.space.highest < 3:
        return found
    try:
        chosen = three_of(result, three)
    except InputError as exc:
        return found | {"three_problem": str(exc), "three": _names(result, three_of(result, ()))}
    names, voxels = _names(result, chosen), layers(result, mask, chosen)
    worst = min((voxel for layer in voxels for line in layer for voxel in line if voxel), key=lambda each: -each.heat)
    alt = f"The tests of {names[0]}, {names[1]} and {names[2]}; worst: {worst.words}"
    return found | {"cube": cube(voxels, names, alt), "layers": voxels, "three": names}


def _names(result: Tomography, three: tuple[int, int, int]) -> tuple[str, str, str]:
    a, b, c = (result.space.names[number] for number in three)
    return a, b, c


def _suggested(kept: Kept, result: Tomography) -> list[tuple[str, str]]:
    """The saved queries, or some of those that fit every space, by name and in words."""
    saved = cast(dict[str, dict[str, object]], kept.summary.get("queries") or {})
    if saved:
        return [(name, str(each["question"])) for name, each in saved.items()]
    return [] if result.space.highest < 3 else [(name, NAMED[name]) for name in ("Q3", "Q4", "Q7", "Q9")]


def _history(name: str, history: Sequence[Kept]) -> list[Markup]:
    """The chart of the means over all tests, oldest first."""
    if len(history) < 2:
        return []
    marks = [_mark(name, each) for each in reversed(history)]
    alt = told(marks, ROBUSTNESS, None)
    return [timeline(marks, alt, quantity=ROBUSTNESS, line=None, size=size) for size in (WIDE, NARROW)]


def _mark(name: str, kept: Kept) -> Mark:
    value, low, high = (float(cast(float, kept.summary[key])) for key in ("value", "low", "high"))
    href = under(f"/monitors/{quote(name)}/robustness/{kept.round}")
    return Mark(kept.round, kept.at, value, low, high, kept.model_version, href=href)

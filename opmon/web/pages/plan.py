"""Planning labels: how many an interval of some width needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from opmon.errors import InputError
from opmon.quantities import Quantity
from opmon.web.charts import NARROW, WIDE, curve
from opmon.web.pages.asking import TheSite, Watcher
from opmon.web.planned import Planned, Wish, known_of, planned
from opmon.web.templating import page
from opmon.wording import beside_axis, counted

router = APIRouter()

_THOUSANDS, _BETWEEN = re.compile(r"\d{1,3}([,. '’\u00a0\u202f])\d{3}(\1\d{3})*"), re.compile(r"[^0-9]")
"""A whole number as people write one, such as 10,000."""
Given = Annotated[str | None, Query(max_length=30)]


@router.get("/monitors/{monitor}/plan")
def plan(
    site: TheSite,
    person: Watcher,
    monitor: str,
    half_width: Given = None,
    inputs: Given = None,
    expected: Given = None,
    aim: Given = None,
) -> HTMLResponse:
    """The plan for what the form asks; shares are asked for in per cent, and widths in points."""
    settings = site.monitor_for(person, monitor)
    known = known_of(site, settings)
    scale = 100 if known.quantity.percent else 1
    found, problem = None, None
    try:
        found = planned(
            known,
            Wish(
                _number("the width", half_width, scale),
                _whole("the inputs", inputs),
                _number(f"the expected {known.quantity.name}", expected, scale),
                _number("the aim", aim, 1),
            ),
        )
    except InputError as exc:
        problem = str(exc)
    given = {"half_width": half_width, "inputs": inputs, "expected": expected, "aim": aim}
    return page(
        "plan.html",
        person=person,
        name=monitor,
        known=known,
        found=found,
        problem=problem,
        given=given,
        scale=scale,
        charts=[] if found is None else _charts(found),
        usual=_usual(known.quantity),
    )


def _usual(quantity: Quantity) -> str:
    return "points" if quantity.percent else quantity.unit or "units of the estimate"


def _number(what: str, text: str | None, scale: float) -> float | None:
    if text is None or not text.strip():
        return None
    try:
        return float(text.replace(",", ".")) / scale
    except ValueError:
        raise InputError(f"{what} must be a number; got {text!r}") from None


def _whole(what: str, text: str | None) -> int | None:
    given = text or ""
    found = _number(what, _BETWEEN.sub("", given) if _THOUSANDS.fullmatch(given.strip()) else text, 1)
    if found is None:
        return None
    if not 1 <= found <= 10**12 or found != int(found):
        raise InputError(f"{what} must be a whole number above 0; got {text!r}")
    return int(found)


def _charts(found: Planned) -> list[Markup]:
    quantity = found.known.quantity
    own = [(float(n), width) for n, width, _ in found.curve]
    plain = [(float(n), width) for n, _, width in found.curve]
    lines = [("plain-line", plain), ("estimate", own)]
    if found.hopeful:
        lines.append(("hopeful", [(float(n), width) for n, width in found.hopeful]))
    chosen = (float(found.plan.budget), found.plan.half_width)
    alt = (
        f"The more labels, the narrower the interval: {counted(found.curve[0][0], 'label')} give ± "
        f"{quantity.difference(found.curve[0][1])}, {found.plan.budget:,} give ± "
        f"{quantity.difference(found.plan.half_width)}, {found.curve[-1][0]:,} give ± "
        f"{quantity.difference(found.curve[-1][1])}."
    )

    def down(ticks: Sequence[float]) -> list[str]:
        beside = beside_axis(ticks, in_percent=quantity.percent)
        return [f"± {text.removesuffix(' %')}" for text in beside]

    return [curve(lines, alt, chosen=chosen, across=_count, down=down, size=size) for size in (WIDE, NARROW)]


def _count(value: float) -> str:
    return f"{value:,.0f}"

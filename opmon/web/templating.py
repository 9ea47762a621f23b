"""Pages from templates; everything that is put into one is escaped."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fastapi.responses import HTMLResponse

from opmon import wording
from opmon.binding import bound_page
from opmon.durations import show_duration
from opmon.web import assets, words
from opmon.web.root import mlflow_pages, root
from opmon.web.tables import tables_of

if TYPE_CHECKING:
    import jinja2


def page(
    template: str, status: int = 200, *, values: Mapping[str, object] | None = None, **more: object
) -> HTMLResponse:
    """The page that ``template`` makes of values."""
    return HTMLResponse(rendered(template, {**(values or {}), **more}), status)


def rendered(template: str, values: Mapping[str, object]) -> str:
    """The HTML that ``template`` makes of values; numbers stay with their units."""
    return bound_page(_environment().get_template(template).render(values))


@functools.cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("opmon.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        asset=assets.address_of,
        root=root,
        mlflow_pages=mlflow_pages,
        states=words.STATES,
        waits=words.WAITS,
        event_words=words.EVENTS,
        delivery_words=words.DELIVERIES,
        tables_of=tables_of,
    )
    environment.filters.update(
        counted=wording.counted,
        counting=wording.counting,
        within=wording.within,
        duration=show_duration,
        bounds=words.bounds_of,
        sure=words.sure_of,
        percent=wording.percent,
        signed_points=wording.signed_points,
        brief=words.brief,
        capitalize_first=words.begun,
        drift_rows=words.drift_rows,
        measured_in=words.measured_in,
        is_moment=words.moment_of,
        as_value=words.value_of,
    )
    return environment

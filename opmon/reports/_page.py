"""HTML pages that stand alone: one file, no scripts, nothing fetched, everything escaped."""

from __future__ import annotations

import base64
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from opmon import wording
from opmon.binding import bound_page
from opmon.reports import text

if TYPE_CHECKING:
    import jinja2


def render(template: str, **values: object) -> str:
    """The page that ``template`` makes of ``values``; numbers stay with their units."""
    return bound_page(_environment().get_template(template).render(**values))


def write_page(path: Path, template: str, **values: object) -> Path:
    """Writes the page and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(template, **values), encoding="utf-8")
    return path


def data_uri(content: bytes, media_type: str) -> str:
    """``content`` as an address that holds it."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"


@functools.cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("opmon.reports", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=text.shown, percent=text.percent, number=text.number)
    environment.filters.update(counted=wording.counted, counting=wording.counting)
    return environment

"""Estimates one below the other, each with its interval: which of them differ is seen at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from opmon.quantities import Quantity
from opmon.types import Estimate
from opmon.web.charts._axis import Axis, around, at
from opmon.web.charts.timeline import Size
from opmon.wording import beside_axis

_LINE = 30


def whiskers(rows: Sequence[tuple[str, Estimate]], alt: str, *, quantity: Quantity, width: int) -> Markup:
    """A dot and a bar for each row, by its name; ``alt`` says in words what the chart shows."""
    size = Size(width, _LINE * len(rows) + 40, left=96, right=16, top=8, bottom=30)
    bounds = [bound for _, each in rows for bound in (each.low, each.high, each.value)]
    x = Axis(*around(bounds, share=quantity.share), size.left, size.width - size.right)
    parts = []
    ticks = x.ticks(4 if width < 500 else 8)
    for tick, words in zip(ticks, beside_axis(ticks, in_percent=quantity.percent), strict=True):
        parts.append(f'<path class="grid" d="M{at(x(tick))} {size.top}V{size.height - size.bottom}"/>')
        parts.append(f'<text class="date" x="{at(x(tick))}" y="{size.height - 8}">{escape(words)}</text>')
    for k, (name, each) in enumerate(rows):
        y = size.top + _LINE * (k + 0.5)
        shown = name if len(name) <= 13 else f"{name[:12]}…"
        parts.append(f'<text class="tick" x="{size.left - 10}" y="{at(y)}" dy=".33em">{escape(shown)}</text>')
        parts.append(f'<path class="span" d="M{at(x(each.low))} {at(y)}H{at(x(each.high))}"/>')
        parts.append(f'<circle class="point final" cx="{at(x(each.value))}" cy="{at(y)}" r="5"/>')
    return Markup(  # noqa: S704 - numbers, and text that is escaped
        f'<svg class="chart" viewBox="0 0 {size.width} {size.height}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )

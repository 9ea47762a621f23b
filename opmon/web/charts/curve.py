"""One number against another: how wide an interval becomes with so many labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from opmon.web.charts._axis import Axis, at, path
from opmon.web.charts.timeline import Size


def curve(
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    alt: str,
    *,
    chosen: tuple[float, float] | None,
    across: Callable[[float], str],
    down: Callable[[Sequence[float]], Sequence[str]],
    size: Size,
) -> Markup:
    """Lines by their classes, each as points from left to right; ``chosen`` is marked on both axes.

    ``across`` and ``down`` write the numbers beside the axes, the latter all at once; ``alt`` says in words what the
    chart shows.
    """
    points = [point for _, line in lines for point in line]
    y = Axis(0, max(each[1] for each in points) * 1.05, size.height - size.bottom, size.top)
    ticks = y.ticks(5)
    beside = down(ticks)
    size = size.with_room(beside)
    x = Axis(0, max(each[0] for each in points), size.left, size.width - size.right - 12)
    parts = []
    for tick, told in zip(ticks, beside, strict=True):
        where = at(y(tick))
        parts.append(f'<path class="grid" d="M{size.left} {where}H{size.width - size.right}"/>')
        parts.append(f'<text class="tick" x="{size.left - 7}" y="{where}" dy=".33em">{escape(told)}</text>')
    for tick in x.ticks(size.dates + 1):
        words = escape(across(tick))
        parts.append(f'<text class="date" x="{at(x(tick))}" y="{size.height - 7}">{words}</text>')
    parts += [f'<path class="{kind}" d="{path((x(a), y(b)) for a, b in line)}"/>' for kind, line in lines]
    if chosen is not None:
        right, high = x(chosen[0]), y(chosen[1])
        parts.append(f'<path class="threshold" d="M{size.left} {at(high)}H{at(right)}V{size.height - size.bottom}"/>')
        parts.append(f'<circle class="point final" cx="{at(right)}" cy="{at(high)}" r="5"/>')
    return Markup(  # noqa: S704 - numbers, and text that is escaped
        f'<svg class="chart" viewBox="0 0 {size.width} {size.height}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )

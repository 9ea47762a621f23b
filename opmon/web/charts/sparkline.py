"""The last estimates of a monitor in the space of a word: a line in its interval's band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from markupsafe import Markup, escape

from opmon.quantities import Quantity
from opmon.web.charts._axis import Axis, around, at, path

WIDTH, HEIGHT, _EDGE = 120, 28, 4


class Estimated(Protocol):
    """An estimate with its interval."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def sparkline(points: Sequence[Estimated], alt: str, *, quantity: Quantity, line: float | None = None) -> Markup:
    """The estimates, oldest first, with the threshold ``line``; ``alt`` says in words what it shows."""
    if not points:
        return Markup()
    bounds = [bound for each in points for bound in (each.low, each.high)]
    sides = () if line is None else quantity.sides(line)
    y = Axis(*around([*bounds, *sides], share=quantity.share), HEIGHT - 1, 1)
    x = Axis(0, max(len(points) - 1, 1), _EDGE, WIDTH - _EDGE)
    upper = [(x(k), y(each.high)) for k, each in enumerate(points)]
    lower = [(x(k), y(each.low)) for k, each in reversed(list(enumerate(points)))]
    middle = [(x(k), y(each.value)) for k, each in enumerate(points)]
    if len(points) == 1:
        (here, top), (_, bottom) = upper[0], lower[0]
        upper, lower = [(here, top), (here + 3, top)], [(here + 3, bottom), (here, bottom)]
    parts = [f'<path class="band" d="{path([*upper, *lower])}Z"/>']
    parts += [f'<path class="threshold" d="M0 {at(y(side))}H{WIDTH}"/>' for side in sides]
    parts.append(f'<path class="estimate" d="{path(middle)}"/>')
    parts.append(f'<circle class="now" cx="{at(middle[-1][0])}" cy="{at(middle[-1][1])}" r="2.5"/>')
    head = f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(alt)}">'
    return Markup(f"{head}{''.join(parts)}</svg>")  # noqa: S704 - numbers, and text that is escaped

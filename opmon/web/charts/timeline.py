"""What was estimated over time: intervals as a band, the threshold, alarms, changes of version, the rolling line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise

from markupsafe import Markup, escape

from opmon.quantities import Quantity
from opmon.queries import ExpectedPoint, TimelinePoint
from opmon.web.charts._axis import Axis, around, at, path
from opmon.wording import beside_axis, counted


@dataclass(frozen=True, slots=True)
class Mark:
    """One round on the chart."""

    round: int
    at: datetime
    value: float
    low: float
    high: float
    version: str
    alarm: bool = False
    provisional: bool = False
    expected: bool = False
    """Whether it is what was expected before any label, and no estimate."""
    rolling: float | None = None
    href: str | None = None
    """Where a click on it leads."""

    @classmethod
    def of(cls, point: TimelinePoint, href: str | None = None) -> Mark:
        """The mark of one round of a timeline."""
        estimate = point.estimate
        return cls(
            round=point.round,
            at=point.at,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            version=point.model_version,
            alarm=point.alarm,
            provisional=estimate.provisional,
            rolling=point.rolling,
            href=href,
        )

    @classmethod
    def before_labels(cls, point: ExpectedPoint, href: str | None = None) -> Mark:
        """The mark of a round that waits for labels."""
        of = point.expected
        return cls(point.round, point.at, of.value, of.low, of.high, point.model_version, expected=True, href=href)


def marks_of(points: Sequence[TimelinePoint], waiting: Sequence[ExpectedPoint], pages: str | None = None) -> list[Mark]:
    """Rounds with an estimate, and such that wait for labels with what is expected of them, in order; ``pages`` is what
    the addresses of their pages begin with."""

    def at(round_: int) -> str | None:
        return None if pages is None else f"{pages}{round_}"

    marks = [Mark.of(point, at(point.round)) for point in points]
    marks += [Mark.before_labels(point, at(point.round)) for point in waiting]
    return sorted(marks, key=lambda each: each.round)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a chart on its own paper: text in it is 12 high, so that a small screen needs a small chart."""

    width: int
    height: int
    left: int = 56
    right: int = 14
    top: int = 22
    bottom: int = 26

    def with_room(self, beside: Sequence[str]) -> Size:
        """The size with as much room on the left as what stands beside its axis takes."""
        return replace(self, left=max(self.left, 12 + round(7.2 * max(map(len, beside), default=0))))

    @property
    def dates(self) -> int:
        """So many dates fit below it."""
        return max(2, self.width // 170)


_DAY = timedelta(days=1)
_NAME_WIDTH = 110
"""What the name of the threshold takes at most, from the right edge."""
WIDE, NARROW = Size(960, 300), Size(360, 240, left=50, right=8)


def timeline(marks: Sequence[Mark], alt: str, *, quantity: Quantity, line: float | None, size: Size) -> Markup:
    """The rounds, oldest first; ``line`` is the threshold, and ``alt`` says in words what the chart shows."""
    sides = () if line is None else quantity.sides(line)
    low, high = around(_shown(marks, sides), share=quantity.share)
    y = Axis(low, high, size.height - size.bottom, size.top)
    ticks = y.ticks(5)
    beside = beside_axis(ticks, in_percent=quantity.percent)
    size = size.with_room(beside)
    x = _places(marks, size)
    parts = [*_grid(y, ticks, beside, size), *_dates(marks, x, size), *_bands(marks, x, y), *_versions(marks, x, size)]
    for side in sides:
        parts += _threshold(side, y, quantity, size, [(x[k], y(each.value)) for k, each in enumerate(marks)])
    parts += _rolling(marks, x, y)
    parts += _points(marks, x, y, quantity)
    return Markup(  # noqa: S704 - numbers, and text that is escaped
        f'<svg class="chart" viewBox="0 0 {size.width} {size.height}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )


def _shown(marks: Sequence[Mark], lines: Sequence[float]) -> list[float]:
    """What the chart has room for: all that is final, the lines of the threshold, and every value.

    Intervals of a few labels may be many times as wide: they get half as much room again, and run off the chart.
    """
    final = [bound for each in marks if not _kind(each) for bound in (each.low, each.high) if math.isfinite(bound)]
    opened = [bound for each in marks if _kind(each) for bound in (each.low, each.high)]
    shown = [*final, *(each.value for each in marks), *lines]
    if not final:
        return [*shown, *opened]
    room = (max(shown) - min(shown)) / 2
    least, most = min(shown) - room, max(shown) + room
    return [*shown, *(min(max(bound, least), most) for bound in opened)]


def told(marks: Sequence[Mark], quantity: Quantity, line: float | None) -> str:
    """The chart as sentences, for whoever cannot see it."""
    waiting, marks = [each for each in marks if each.expected], [each for each in marks if not each.expected]
    ahead = [_expected(waiting[-1], quantity)] if waiting else []
    if not marks:
        return " ".join(["No round has an estimate yet.", *ahead])
    final = [each for each in marks if not each.provisional]
    last = (final or marks)[-1]
    worst, word = _worst(final or marks, quantity)
    span = f"{marks[0].at:%d %B %Y} to {marks[-1].at:%d %B %Y}"
    said = [
        f"{quantity.caption} over {counted(len(marks), 'round')}, {span}.",
        *_provisional(len(marks) - len(final), len(marks)),
        f"The last {'final ' if 0 < len(final) < len(marks) else ''}one, round {last.round}: "
        f"{quantity.interval(last.value, last.low, last.high)}.",
        f"The {word}: {quantity.text(worst.value, quantity.digits(worst.low, worst.high))} in round {worst.round}.",
    ]
    if line is not None:
        said.append(f"The threshold is {quantity.threshold(line)}.")
    alarms = [each.round for each in marks if each.alarm]
    if alarms:
        shown = ", ".join(map(str, alarms[-8:]))
        said.append(
            f"{counted(len(alarms), 'round')} with an alarm{', the last:' if len(alarms) > 8 else ':'} {shown}."
        )
    return " ".join([*said, *ahead])


def _provisional(count: int, of: int) -> list[str]:
    if not count:
        return []
    which = "All" if count == of else f"{count:,} of them"
    return [f"{which} {'is' if count == 1 < of else 'are'} provisional: labels still come."]


def _worst(marks: Sequence[Mark], quantity: Quantity) -> tuple[Mark, str]:
    """The worst round, or the highest where neither way is better, and what it is called."""
    worst = max(marks, key=lambda each: quantity.badness(each.value))
    return worst, {"higher": "lowest", "zero": "farthest from 0"}.get(quantity.better, "highest")


def _expected(mark: Mark, quantity: Quantity) -> str:
    interval = quantity.interval(mark.value, mark.low, mark.high)
    return f"Round {mark.round} waits for labels: its expected {quantity.name} is {interval}."


def _places(marks: Sequence[Mark], size: Size) -> list[float]:
    """Where each round lies from left to right: by time, or one after the other where time does not tell them apart."""
    moments = [each.at.timestamp() for each in marks]
    span = moments[-1] - moments[0]
    apart = span > 0 and all(later > earlier for earlier, later in pairwise(moments))
    values = moments if apart else [float(k) for k in range(len(marks))]
    axis = Axis(values[0], values[-1], size.left + 10, size.width - size.right - 10)
    return [axis(value) for value in values] if len(marks) > 1 else [(axis.start + axis.stop) / 2]


def _grid(y: Axis, ticks: Sequence[float], beside: Sequence[str], size: Size) -> Iterator[str]:
    for tick, words in zip(ticks, beside, strict=True):
        where = at(y(tick))
        yield f'<path class="grid" d="M{size.left} {where}H{size.width - size.right}"/>'
        yield f'<text class="tick" x="{size.left - 7}" y="{where}" dy=".33em">{escape(words)}</text>'


def _dates(marks: Sequence[Mark], x: Sequence[float], size: Size) -> Iterator[str]:
    """Some moments below, as far apart as they need to be read; the first and the last are among them.

    They are days, or times of day where days would come twice.
    """
    gap, chosen, last = (size.width - size.left) / size.dates, list[int](), len(marks) - 1
    for k in range(len(marks)):
        if (not chosen or x[k] - x[chosen[-1]] >= gap) and (k == last or x[last] - x[k] >= gap):
            chosen.append(k)
    times = any(marks[later].at - marks[earlier].at < _DAY for earlier, later in pairwise(chosen))
    for k in chosen:
        moment = marks[k].at
        anchor = "date-last" if k == last and k else "date-first" if k == 0 and last else "date"
        place = f'x="{at(x[k])}" y="{size.height - 7}" data-at="{moment.isoformat()}"'
        form = ' data-form="time"' if times else ""
        words = f"{moment:%d %b, %H:%M}" if times else f"{moment:%d %b %Y}"
        yield f'<text class="date {anchor}" {place}{form}>{words}</text>'


def _bands(marks: Sequence[Mark], x: Sequence[float], y: Axis) -> Iterator[str]:
    """The intervals of final estimates, a band for each model version; those of one round, or provisional, as bars."""
    for _, own in groupby(range(len(marks)), key=lambda k: (marks[k].version, _kind(marks[k]))):
        places = list(own)
        if len(places) == 1 or _kind(marks[places[0]]):
            kind = f"span {_kind(marks[places[0]])}".rstrip()
            for k in places:
                yield f'<path class="{kind}" d="M{at(x[k])} {at(y(marks[k].low))}V{at(y(marks[k].high))}"/>'
            continue
        upper = [(x[k], y(marks[k].high)) for k in places]
        lower = [(x[k], y(marks[k].low)) for k in reversed(places)]
        yield f'<path class="band" d="{path([*upper, *lower])}Z"/>'
        yield f'<path class="estimate" d="{path((x[k], y(marks[k].value)) for k in places)}"/>'


def _kind(mark: Mark) -> str:
    """How it differs from a final estimate."""
    return "expected" if mark.expected else "provisional" if mark.provisional else ""


def _rolling(marks: Sequence[Mark], x: Sequence[float], y: Axis) -> Iterator[str]:
    """The rolling estimates, a line for each model version: each begins anew."""
    for _, own in groupby(range(len(marks)), key=lambda k: marks[k].version):
        known = [(x[k], y(rolling)) for k in own if (rolling := marks[k].rolling) is not None]
        if len(known) > 1:
            yield f'<path class="rolling" d="{path(known)}"/>'


def _versions(marks: Sequence[Mark], x: Sequence[float], size: Size) -> Iterator[str]:
    """A line and a name where another model version begins; names that would lie on others are left out."""
    written = -1e9
    for k, each in enumerate(marks):
        if k and each.version == marks[k - 1].version:
            continue
        where = size.left + 2 if k == 0 else (x[k] + x[k - 1]) / 2
        if k:
            yield f'<path class="version" d="M{at(where)} {size.top - 14}V{size.height - size.bottom}"/>'
        name = f"version {each.version}" if len(each.version) < 12 else f"version {each.version[:10]}…"
        if where - written > 6.2 * len(name) + 10 and where + 6.2 * len(name) < size.width:
            written = where
            yield f'<text class="version-name" x="{at(where + 4)}" y="{size.top - 8}">{escape(name)}</text>'


def _threshold(
    line: float, y: Axis, quantity: Quantity, size: Size, points: Sequence[tuple[float, float]]
) -> Iterator[str]:
    """The line with its name at its end, on the side of it on which no point lies under the name."""
    where, right = y(line), size.width - size.right
    yield f'<path class="threshold" d="M{size.left} {at(where)}H{right}"/>'
    words = escape(f"threshold {quantity.exactly(line)}")
    sides = (14, -5) if where < size.height / 2 else (-5, 14)  # from the line to the foot of the name
    near = [down - where for across, down in points if across > right - _NAME_WIDTH]
    free = [side for side in sides if not any(side - 15 < each < side + 5 for each in near)]
    beside = at(where + (free or sides)[0])
    yield f'<text class="threshold-name" x="{right - 3}" y="{beside}">{words}</text>'


def _points(marks: Sequence[Mark], x: Sequence[float], y: Axis, quantity: Quantity) -> Iterator[str]:
    few = len(marks) <= 60
    for k, each in enumerate(marks):
        across, down = at(x[k]), at(y(each.value))
        alarm = ", alarm" if each.alarm else ""
        open_ = ", provisional" if each.provisional else ""
        interval = quantity.interval(each.value, each.low, each.high)
        before = f"expected {quantity.name} before its labels, " if each.expected else ""
        words = f"Round {each.round}: {before}{interval}{open_}{alarm}, version {each.version}"
        link = f' data-href="{escape(each.href)}"' if each.href else ""
        kind = "alarm" if each.alarm else _kind(each) or ("final" if few else "final small")
        shape = (
            f'<path class="point alarm" d="M{across} {at(y(each.value) - 6)}l6 6l-6 6l-6 -6Z"'
            if each.alarm
            else f'<circle class="point {kind}" cx="{across}" cy="{down}" r="{3.5 if few else 2}"'
        )
        told_at = f' data-x="{across}" data-at="{each.at.isoformat()}"'
        yield f"{shape}{told_at}{link}><title>{escape(words)}</title></{'path' if each.alarm else 'circle'}>"

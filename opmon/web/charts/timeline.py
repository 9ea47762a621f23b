"""What was estimated over time: intervals as a band, the threshold, alarms, changes of version, the rolling line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise

from markupsafe import Markup, escape

from opmon.quantities import Quantity
from opmon.queries import ExpectedPoint, TimelinePoint
from opmon.web.charts._axis import Axis, around, at, path
from opmon.wording import counted


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

    @property
    def dates(self) -> int:
        """So many dates fit below it."""
        return max(2, self.width // 170)


_NAME_WIDTH = 110
"""What the name of the threshold takes at most, from the right edge."""
WIDE, NARROW = Size(960, 300), Size(360, 240, left=50, right=8)


def timeline(marks: Sequence[Mark], alt: str, *, quantity: Quantity, line: float | None, size: Size) -> Markup:
    """The rounds, oldest first; ``line`` is the threshold, and ``alt`` says in words what the chart shows."""
    bounds = [bound for each in marks for bound in (each.low, each.high, each.value)]
    low, high = around([*bounds, *(() if line is None else (line,))], share=quantity.share)
    y = Axis(low, high, size.height - size.bottom, size.top)
    x = _places(marks, size)
    parts = [*_grid(y, quantity, size), *_dates(marks, x, size), *_bands(marks, x, y), *_versions(marks, x, size)]
    if line is not None:
        parts += _threshold(line, y, quantity, size, [(x[k], y(each.value)) for k, each in enumerate(marks)])
    parts += _rolling(marks, x, y)
    parts += _points(marks, x, y, quantity)
    return Markup(  # noqa: S704 - numbers, and text that is escaped
        f'<svg class="chart" viewBox="0 0 {size.width} {size.height}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )


def told(marks: Sequence[Mark], quantity: Quantity, line: float | None) -> str:
    """The chart as sentences, for whoever cannot see it."""
    waiting, marks = [each for each in marks if each.expected], [each for each in marks if not each.expected]
    ahead = [_expected(waiting[-1], quantity)] if waiting else []
    if not marks:
        return " ".join(["No round has an estimate yet.", *ahead])
    last = marks[-1]
    worst = (min if quantity.better == "higher" else max)(marks, key=lambda each: each.value)
    word = "lowest" if quantity.better == "higher" else "highest"
    span = f"{marks[0].at:%d %B %Y} to {last.at:%d %B %Y}"
    said = [
        f"{quantity.name.capitalize()} over {counted(len(marks), 'round')}, {span}.",
        f"The last one, round {last.round}: {quantity.interval(last.value, last.low, last.high)}.",
        f"The {word}: {quantity.text(worst.value)} in round {worst.round}.",
    ]
    if line is not None:
        said.append(f"The threshold is {quantity.text(line)}.")
    alarms = [each.round for each in marks if each.alarm]
    if alarms:
        shown = ", ".join(map(str, alarms[-8:]))
        said.append(
            f"{counted(len(alarms), 'round')} with an alarm{', the last:' if len(alarms) > 8 else ':'} {shown}."
        )
    return " ".join([*said, *ahead])


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


def _grid(y: Axis, quantity: Quantity, size: Size) -> Iterator[str]:
    for tick in y.ticks(5):
        where = at(y(tick))
        yield f'<path class="grid" d="M{size.left} {where}H{size.width - size.right}"/>'
        yield f'<text class="tick" x="{size.left - 7}" y="{where}" dy=".33em">{escape(_written(quantity, tick))}</text>'


def _written(quantity: Quantity, value: float) -> str:
    """A number at the axis, whose unit stands in the heading."""
    return quantity.text(value) if quantity.percent else quantity.text(value).removesuffix(quantity.unit).rstrip()


def _dates(marks: Sequence[Mark], x: Sequence[float], size: Size) -> Iterator[str]:
    """Some moments below, as far apart as they need to be read; the first and the last are among them."""
    y, gap, before = size.height - 7, (size.width - size.left) / size.dates, -1e9
    last = len(marks) - 1
    for k, each in enumerate(marks):
        if x[k] - before < gap or (k != last and x[last] - x[k] < gap):
            continue
        before = x[k]
        anchor = "date-last" if k == last and k else "date-first" if k == 0 and last else "date"
        place = f'x="{at(x[k])}" y="{y}" data-at="{each.at.isoformat()}"'
        yield f'<text class="date {anchor}" {place}>{each.at:%d %b %Y}</text>'


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
    words = escape(f"threshold {quantity.text(line)}")
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

"""How the accuracy figure is drawn: on matplotlib's ``Figure`` itself, without pyplot and its state between threads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opmon.reports.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opmon.reports.figures import AccuracyPoint

MOST_BARS = 60
_FONT = "DejaVu Sans"


@dataclass(frozen=True, slots=True)
class Palette:
    """Okabe and Ito's colours, told apart with every kind of colour blindness."""

    paper: str = "#ffffff"
    ink: str = "#1f2430"
    quiet: str = "#636b7a"
    grid: str = "#e6e9ee"
    estimate: str = "#0072b2"
    threshold: str = "#8a4b00"
    alarm: str = "#d55e00"
    truth: str = "#1f2430"


LIGHT = Palette()
DARK = Palette(
    paper="#161a22",
    ink="#e8ebf1",
    quiet="#9aa3b2",
    grid="#2a303c",
    estimate="#56b4e9",
    threshold="#e69f00",
    alarm="#ff8a3d",
    truth="#f4f6fa",
)


def draw(
    points: Sequence[AccuracyPoint],
    *,
    threshold: float | None,
    truth: Sequence[float | None],
    title: str,
    width: int,
    dark: bool,
) -> Figure:
    """The figure; ``points`` in the order of their rounds, ``truth`` beside them."""
    from matplotlib.figure import Figure

    colours = DARK if dark else LIGHT
    inches = width / 100
    height, above = (4.2, 0.95) if width >= 600 else (3.6, 1.1)
    figure = Figure(figsize=(inches, height), facecolor=colours.paper)
    axes: Axes = figure.add_axes(
        (0.66 / inches, 0.78 / height, (inches - 0.66 - 0.24) / inches, (height - 0.78 - above) / height)
    )
    _frame(axes, colours)
    _title(figure, shown(title, int(width / 11)), height, inches, colours)
    if not points:
        _nothing_yet(axes, colours)
        return figure
    _limits(axes, points, threshold, truth)
    _threshold(axes, threshold, colours)
    _versions(axes, points, width, colours)
    known = {point.round: value for point, value in zip(points, truth, strict=True) if value is not None}
    for part in _by_version(points):
        _estimates(axes, part, len(points), colours)
        _truth(axes, [point for point in part if point.round in known], known, len(points), colours)
    _alarms(figure, axes, points, colours)
    _rounds(axes, points, width, colours)
    _legend(figure, axes, height, inches, colours)
    return figure


def _frame(axes: Axes, colours: Palette) -> None:
    axes.set_facecolor(colours.paper)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(colours.quiet)
    axes.grid(axis="y", color=colours.grid, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", colors=colours.quiet, labelsize=9, length=0, pad=5)
    axes.tick_params(axis="x", length=3)


def _title(figure: Figure, title: str, height: float, inches: float, colours: Palette) -> None:
    figure.text(
        0.16 / inches,
        1 - 0.15 / height,
        _drawable(title),
        va="top",
        fontsize=13,
        fontweight="bold",
        color=colours.ink,
        fontfamily=_FONT,
        parse_math=False,
    )


def _nothing_yet(axes: Axes, colours: Palette) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(
        0.5,
        0.5,
        "No round has been estimated yet.",
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=11,
        color=colours.quiet,
    )


def _limits(
    axes: Axes, points: Sequence[AccuracyPoint], threshold: float | None, truth: Sequence[float | None]
) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    values = [v for p in points for v in (p.low, p.value, p.high)] + [t for t in truth if t is not None]
    values = [v for v in [*values, *([] if threshold is None else [threshold])] if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(values), max(values)
    pad = max(0.08 * (high - low), 0.01)
    is_share = low >= 0 and high <= 1
    axes.set_ylim(low - 1.4 * pad, min(high + pad, 1 + 0.25 * pad) if is_share else high + pad)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    if is_share:
        digits = 0 if high - low > 0.05 else 1
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda v, _: f"{100 * v:.{digits}f} %" if -1e-9 <= v <= 1 + 1e-9 else "")
        )


def _threshold(axes: Axes, threshold: float | None, colours: Palette) -> None:
    if threshold is not None:
        word = f"{100 * threshold:.4g} %" if 0 <= threshold <= 1 else f"{threshold:.4g}"
        axes.axhline(
            threshold, color=colours.threshold, linewidth=1.4, linestyle=(0, (5, 3)), label=f"threshold {word}"
        )


def _by_version(points: Sequence[AccuracyPoint]) -> Iterator[list[AccuracyPoint]]:
    """The points of each model version: a line never connects two versions."""
    for version in dict.fromkeys(point.model_version for point in points):
        yield [point for point in points if point.model_version == version]


def _versions(axes: Axes, points: Sequence[AccuracyPoint], width: int, colours: Palette) -> None:
    """A line where a version appears for the first time, and its name above as long as there is room for it."""
    firsts = [part[0] for part in _by_version(points)]
    left, right = _span(points)
    pixels = (width - 90) / (right - left)
    free_from = -math.inf
    for index, point in enumerate(firsts):
        if point.model_version is None:
            continue
        x = left if index == 0 else point.round - 0.5
        if index:
            axes.axvline(x, color=colours.quiet, linewidth=0.9, linestyle=(0, (1, 2)))
        name = _drawable(f"version {shown(point.model_version, 14)}")
        if x >= free_from and (right - x) * pixels > 6 * len(name):
            axes.annotate(
                name,
                (x, 1),
                xycoords=("data", "axes fraction"),
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=8.5,
                color=colours.quiet,
                annotation_clip=False,
                parse_math=False,
            )
            free_from = x + 6.6 * (len(name) + 2) / pixels


def _estimates(axes: Axes, part: Sequence[AccuracyPoint], count: int, colours: Palette) -> None:
    rounds = [point.round for point in part]
    bounds = [point.low for point in part], [point.high for point in part]
    level = _level(part)
    if count <= MOST_BARS:
        thickness = 6 if count <= 25 else 3.2
        axes.vlines(rounds, *bounds, color=colours.estimate, alpha=0.35, linewidth=thickness, label=level)
    else:
        axes.fill_between(rounds, *bounds, color=colours.estimate, alpha=0.25, linewidth=0, label=level)
    size = 5.5 if count <= 25 else 4.0 if count <= MOST_BARS else 1.6
    line = 1.5 if count <= MOST_BARS else 0.9
    axes.plot(rounds, [point.value for point in part], color=colours.estimate, linewidth=line)
    for provisional, label in ((False, "estimate"), (True, "provisional")):
        chosen = [point for point in part if point.provisional is provisional]
        if chosen:
            axes.plot(
                [point.round for point in chosen],
                [point.value for point in chosen],
                linestyle="none",
                marker="o",
                color=colours.estimate,
                markersize=max(size, 4.5) if provisional else size,
                markerfacecolor=colours.paper if provisional else colours.estimate,
                markeredgewidth=1.5 if provisional else 0,
                zorder=4,
            )
            _legend_mark(axes, label, provisional, line, colours)


def _legend_mark(axes: Axes, label: str, provisional: bool, line: float, colours: Palette) -> None:
    """The legend's own mark: as drawn, but never too small to be seen."""
    axes.plot(
        [],
        [],
        color=colours.estimate,
        linewidth=0 if provisional else line,
        marker="o",
        markersize=5,
        markerfacecolor=colours.paper if provisional else colours.estimate,
        markeredgewidth=1.5 if provisional else 0,
        label=label,
    )


def _level(part: Sequence[AccuracyPoint]) -> str:
    levels = {point.level for point in part}
    return f"{100 * levels.pop():.4g} % interval" if len(levels) == 1 else "interval"


def _truth(axes: Axes, part: Sequence[AccuracyPoint], known: Mapping[int, float], count: int, colours: Palette) -> None:
    """The true accuracy, where it is known, as a dark line under the estimates' points."""
    if part:
        axes.plot(
            [point.round for point in part],
            [known[point.round] for point in part],
            color=colours.truth,
            linewidth=1.4 if count <= MOST_BARS else 1.0,
            linestyle=(0, (3, 1.5)) if count <= MOST_BARS else "solid",
            marker="D" if count <= 25 else None,
            markersize=3.2,
            label="true accuracy",
            zorder=3,
        )


def _alarms(figure: Figure, axes: Axes, points: Sequence[AccuracyPoint], colours: Palette) -> None:
    """A triangle that points at the interval from below."""
    from matplotlib.transforms import offset_copy

    alarms = [point for point in points if point.alarm]
    if alarms:
        size = 9 if len(points) <= MOST_BARS else 7
        axes.plot(
            [point.round for point in alarms],
            [point.low for point in alarms],
            transform=offset_copy(axes.transData, figure, y=-size * 0.75, units="points"),
            linestyle="none",
            marker="^",
            markersize=size,
            color=colours.alarm,
            markeredgecolor=colours.paper,
            markeredgewidth=0.8,
            label="alarm",
            clip_on=False,
            zorder=5,
        )


def _span(points: Sequence[AccuracyPoint]) -> tuple[float, float]:
    first, last = points[0].round, points[-1].round
    margin = max(0.6, 0.02 * (last - first))
    return first - margin, last + margin


def _rounds(axes: Axes, points: Sequence[AccuracyPoint], width: int, colours: Palette) -> None:
    axes.set_xlim(*_span(points))
    dated = all(point.at is not None for point in points)
    room = max(2, (width - 90) // (68 if dated else 44))
    rounds = list(dict.fromkeys(point.round for point in points))
    ticks = _ticks(rounds, room)
    first = {point.round: point for point in reversed(points)}
    axes.set_xticks(ticks, [_tick(first[number], points) for number in ticks])
    label = "round" if not dated else "round, and when it ended (UTC)"
    axes.set_xlabel(label, fontsize=9, color=colours.quiet, labelpad=6)


def _ticks(rounds: Sequence[int], room: int) -> list[int]:
    """No more rounds than there is room for, at round numbers where there are any."""
    if len(rounds) <= room:
        return list(rounds)
    for step in (factor * 10**power for power in range(19) for factor in (1, 2, 5)):
        chosen = [number for number in rounds if number % step == 0]
        if len(chosen) <= room:
            return chosen or [rounds[0]]
    return [rounds[0]]


def _tick(point: AccuracyPoint, points: Sequence[AccuracyPoint]) -> str:
    if point.at is None or any(other.at is None for other in points):
        return str(point.round)
    from datetime import UTC

    moments = [other.at.astimezone(UTC) for other in points if other.at is not None]
    days = (max(moments) - min(moments)).total_seconds() / 86_400
    at = point.at.astimezone(UTC)
    if days >= 300:
        return f"{point.round}\n{at:%b %Y}"
    return f"{point.round}\n{at.day} {at:%b}" if days >= 1 or len(points) == 1 else f"{point.round}\n{at:%H:%M}"


def _legend(figure: Figure, axes: Axes, height: float, inches: float, colours: Palette) -> None:
    """One entry per kind of mark, in reading order, in a row under the title."""
    found: dict[str, Any] = {}
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        found.setdefault(label, handle)
    order = ["estimate", "provisional", *(name for name in found if name.endswith("interval")), "true accuracy"]
    labels = [name for name in order if name in found] + [name for name in found if name not in order]
    figure.legend(
        [found[name] for name in labels],
        labels,
        loc="upper left",
        bbox_to_anchor=(0.08 / inches, 1 - 0.42 / height),
        ncols=len(labels) if inches >= 6 else 3,
        frameon=False,
        fontsize=9 if inches >= 6 else 7.5,
        labelcolor=colours.ink,
        handlelength=1.6,
        handletextpad=0.5,
        columnspacing=1.4 if inches >= 6 else 0.8,
        borderaxespad=0,
    )


def _drawable(text: str) -> str:
    """Without the characters that the font cannot draw: matplotlib would warn for each."""
    return "".join(character if ord(character) < 0x2600 else "□" for character in text)

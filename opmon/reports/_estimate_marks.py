"""The marks of the figure of estimates: points with their intervals, the truth, alarms, the threshold, versions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from opmon.reports.lettering import written
from opmon.reports.palette import Palette
from opmon.reports.text import shown
from opmon.wording import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opmon.quantities import Quantity
    from opmon.reports.estimate_figure import EstimatePoint

MOST_BARS = 60
"""With more rounds than this the intervals are drawn as a band."""


def by_version(points: Sequence[EstimatePoint]) -> Iterator[list[EstimatePoint]]:
    """The points of each model version: a line never connects two versions."""
    for version in dict.fromkeys(point.model_version for point in points):
        yield [point for point in points if point.model_version == version]


def span(points: Sequence[EstimatePoint]) -> tuple[float, float]:
    first, last = points[0].round, points[-1].round
    margin = max(0.6, 0.02 * (last - first))
    return first - margin, last + margin


def draw_threshold(axes: Axes, quantity: Quantity, threshold: float | None, colours: Palette) -> None:
    if threshold is None:
        return
    word = f"threshold {quantity.threshold(threshold)}"
    for side in quantity.sides(threshold):
        axes.axhline(side, color=colours.threshold, linewidth=1.4, linestyle=(0, (5, 3)), label=word)


def draw_versions(axes: Axes, points: Sequence[EstimatePoint], width: int, colours: Palette) -> None:
    """A line where a version appears for the first time, and its name above as long as there is room for it."""
    firsts = [part[0] for part in by_version(points)]
    left, right = span(points)
    pixels = (width - 90) / (right - left)
    free_from = -math.inf
    for index, point in enumerate(firsts):
        if point.model_version is None:
            continue
        x = left if index == 0 else point.round - 0.5
        if index:
            axes.axvline(x, color=colours.quiet, linewidth=0.9, linestyle=(0, (1, 2)))
        name = written(f"version {shown(point.model_version, 14)}")
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


def estimates_by_version(
    points: Sequence[EstimatePoint], colours: Palette
) -> Iterator[tuple[list[EstimatePoint], str, Palette]]:
    """Each version's points with their name and colour: one for all, unless a few versions take turns."""
    parts = list(by_version(points))
    take_turns = any(before[-1].round >= after[0].round for before, after in pairwise(parts))
    if not take_turns or len(parts) > 1 + len(colours.others):
        yield from ((part, "estimate", colours) for part in parts)
        return
    for part, colour in zip(parts, (colours.estimate, *colours.others), strict=False):
        yield part, written(f"v{shown(part[0].model_version, 6)}"), replace(colours, estimate=colour)


def draw_estimates(axes: Axes, part: Sequence[EstimatePoint], count: int, name: str, colours: Palette) -> None:
    rounds = [point.round for point in part]
    floor, ceiling = axes.get_ylim()  # an interval without an end is drawn to the edge
    bounds = [max(point.low, floor) for point in part], [min(point.high, ceiling) for point in part]
    level = _level(part)
    if count <= MOST_BARS:
        thickness = 6 if count <= 25 else 3.2
        axes.vlines(rounds, *bounds, color=colours.estimate, alpha=0.35, linewidth=thickness, label=level)
    else:
        axes.fill_between(rounds, *bounds, color=colours.estimate, alpha=0.25, linewidth=0, label=level)
    size = 5.5 if count <= 25 else 4.0 if count <= MOST_BARS else 1.6
    line = 1.5 if count <= MOST_BARS else 0.9
    axes.plot(rounds, [point.value for point in part], color=colours.estimate, linewidth=line)
    for provisional, label in ((False, name), (True, "provisional")):
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


def draw_rolling(axes: Axes, part: Sequence[EstimatePoint], colours: Palette) -> None:
    """The last rounds together, as a line; one round alone says the same as its estimate."""
    known = [(point.round, point.rolling) for point in part if point.rolling is not None]
    if len(known) > 1:
        axes.plot(*zip(*known, strict=True), color=colours.rolling, linewidth=1.8, label="rolling", zorder=3.5)


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


def _level(part: Sequence[EstimatePoint]) -> str:
    levels = {point.level for point in part}
    return f"{percent(levels.pop())} interval" if len(levels) == 1 else "interval"


def draw_truth(
    axes: Axes,
    quantity: Quantity,
    part: Sequence[EstimatePoint],
    known: Mapping[int, float],
    count: int,
    colours: Palette,
) -> None:
    """The truth, where it is known, as a dark line under the estimates' points."""
    if part:
        axes.plot(
            [point.round for point in part],
            [known[point.round] for point in part],
            color=colours.truth,
            linewidth=1.4 if count <= MOST_BARS else 1.0,
            linestyle=(0, (3, 1.5)) if count <= MOST_BARS else "solid",
            marker="D" if count <= 25 else None,
            markersize=3.2,
            label=f"true {quantity.name}",
            zorder=3,
        )


def draw_alarms(figure: Figure, axes: Axes, points: Sequence[EstimatePoint], colours: Palette) -> None:
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

"""The layout of the estimates' figure: axes, ticks, legend. matplotlib's ``Figure`` is used without pyplot's state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opmon.quantities import ACCURACY, Quantity
from opmon.reports._beside import beside
from opmon.reports._estimate_marks import (
    draw_alarms,
    draw_estimates,
    draw_rolling,
    draw_threshold,
    draw_truth,
    draw_versions,
    estimates_by_version,
    span,
)
from opmon.reports.lettering import written
from opmon.reports.palette import DARK, LIGHT, Palette
from opmon.reports.text import shown

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opmon.reports.estimate_figure import EstimatePoint

_FONT = "DejaVu Sans"


def draw(
    points: Sequence[EstimatePoint],
    *,
    quantity: Quantity = ACCURACY,
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
    left = 0.66 if quantity.share else 0.95  # other numbers are longer, and have their unit beside them
    figure = Figure(figsize=(inches, height), facecolor=colours.paper)
    axes: Axes = figure.add_axes(
        (left / inches, 0.78 / height, (inches - left - 0.24) / inches, (height - 0.78 - above) / height)
    )
    _frame(axes, colours)
    _title(figure, shown(title, int(width / 11)), height, inches, colours)
    if not points:
        _nothing_yet(axes, colours)
        return figure
    _limits(axes, points, quantity, threshold, truth)
    if quantity.unit or quantity.scale:
        axes.set_ylabel(written(quantity.unit or quantity.scale), fontsize=9, color=colours.quiet)
    draw_threshold(axes, quantity, threshold, colours)
    draw_versions(axes, points, width, colours)
    known = {point.round: value for point, value in zip(points, truth, strict=True) if value is not None}
    for part, name, palette in estimates_by_version(points, colours):
        draw_estimates(axes, part, len(points), name, palette)
        draw_rolling(axes, part, palette)
        draw_truth(axes, quantity, [point for point in part if point.round in known], known, len(points), colours)
    draw_alarms(figure, axes, points, colours)
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
        written(title),
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
    axes: Axes,
    points: Sequence[EstimatePoint],
    quantity: Quantity,
    threshold: float | None,
    truth: Sequence[float | None],
) -> None:
    from matplotlib.ticker import MaxNLocator

    values = [v for p in points for v in (p.low, p.value, p.high)] + [t for t in truth if t is not None]
    values = [v for v in [*values, *([] if threshold is None else quantity.sides(threshold))] if math.isfinite(v)] or [
        0.0,
        1.0,
    ]
    low, high = min(values), max(values)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    if quantity.share:
        pad = max(0.08 * (high - low), 0.01)
        axes.set_ylim(low - 1.4 * pad, min(high + pad, max(1.0, high) + 0.25 * pad))
        axes.yaxis.set_major_formatter(beside(quantity))
        return
    pad = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    axes.set_ylim(low - 1.4 * pad, high + pad)
    axes.yaxis.set_major_formatter(beside(quantity))


def _rounds(axes: Axes, points: Sequence[EstimatePoint], width: int, colours: Palette) -> None:
    axes.set_xlim(*span(points))
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


def _tick(point: EstimatePoint, points: Sequence[EstimatePoint]) -> str:
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
    found: dict[str, Artist] = {}
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        found.setdefault(label, handle)
    order = ("provisional", "interval", "true", "alarm")  # the estimates, by whatever name, come first
    labels = sorted(found, key=lambda label: next((i for i, word in enumerate(order, 1) if word in label.split()), 0))
    threshold = [label for label in labels if label.startswith("threshold ")]
    labels = [label for label in labels if label not in threshold] + threshold
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

"""The figure of a round's slices: each with its interval, the worst first, beside the estimate of all inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.reports._beside import beside
from opmon.reports._drawing import drawn
from opmon.reports.estimate_figure import Format, saved
from opmon.reports.lettering import families, told_apart, written
from opmon.reports.palette import LIGHT, Palette
from opmon.reports.slices import LONGEST, bounds_of
from opmon.types import Estimate
from opmon.types.slicing import Sliced
from opmon.wording import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 30
"""So many slices are drawn; the table has them all."""
_ROW, _BELOW = 0.27, 0.62
_NARROW = 600
"""On fewer pixels names are shorter and the legend has a line for each mark."""

_FROM_THE_LEFT = "\u200e"
"""Has no width; numbers behind a Hebrew or Arabic name would else be drawn on both sides of it."""


def slice_figure(slices: Sequence[Sliced], whole: Estimate, path: Path) -> Path:
    """Writes the figure as PNG or SVG, by the suffix of ``path``, and returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(slice_figure_bytes(slices, whole, kind="svg" if path.suffix.lower() == ".svg" else "png"))
    return path


@drawn
def slice_figure_bytes(slices: Sequence[Sliced], whole: Estimate, *, kind: Format = "png", width: int = 900) -> bytes:
    """The same figure as bytes, ``width`` pixels wide (PNG: twice the pixels)."""
    from matplotlib.figure import Figure

    chosen, inches = in_order(slices, whole)[:SHOWN], width / 100
    above = 0.62 if width >= _NARROW else 0.95
    height = above + _BELOW + _ROW * max(len(chosen), 1)
    figure: Figure = Figure(figsize=(inches, height), facecolor=LIGHT.paper)
    told, _ = told_apart([each.name for each in chosen], _longest(width))
    names = [_name(name, each) for name, each in zip(told, chosen, strict=True)]
    left = min(0.52 * inches, 0.25 + 0.072 * max(map(len, names), default=0))
    box = (left / inches, _BELOW / height, (inches - left - 0.25) / inches, 1 - (above + _BELOW) / height)
    axes: Axes = figure.add_axes(box)
    _frame(axes, whole, names, 6 if width >= _NARROW else 3, LIGHT)
    low, high = _limits(chosen, whole)
    axes.set_xlim(low, high)
    for row, each in enumerate(chosen):
        _mark(axes, row, each, (low, high), LIGHT)
    axes.axvspan(whole.low, whole.high, color=LIGHT.grid, zorder=0)
    axes.axvline(whole.value, color=LIGHT.quiet, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)
    _legend(figure, height, inches, chosen, LIGHT)
    return saved(figure, kind)


def in_order(slices: Sequence[Sliced], whole: Estimate) -> list[Sliced]:
    """The slices with an estimate: those known to be worse first, then by their estimate, the worst first."""
    known = [each for each in slices if each.value is not None]
    return sorted(known, key=lambda each: (each.worse_by is None, -whole.quantity.badness(each.value or 0.0)))


def key_of_names(slices: Sequence[Sliced], whole: Estimate, width: int = 900) -> str:
    """What the numbers in the figure stand for that are there in place of names; empty where there are none."""
    return told_apart([each.name for each in in_order(slices, whole)[:SHOWN]], _longest(width))[1]


def _longest(width: int) -> int:
    return LONGEST - 6 if width >= _NARROW else 18


def _name(name: str, found: Sliced) -> str:
    few = " (few)" if found.note else ""
    return f"{name}{_FROM_THE_LEFT}  {percent(found.share, 0)}{few}"


def _frame(axes: Axes, whole: Estimate, names: Sequence[str], ticks: int, colours: Palette) -> None:
    axes.set_facecolor(colours.paper)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(colours.quiet)
    axes.grid(axis="x", color=colours.grid, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", colors=colours.quiet, labelsize=9, length=0, pad=5)
    axes.tick_params(axis="y", labelsize=9 if ticks > 3 else 8)
    axes.set_yticks(range(len(names)), names, color=colours.ink, fontfamily=families(names), parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    quantity = whole.quantity
    axes.set_xlabel(written(quantity.title), fontsize=9, color=colours.quiet)
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=ticks, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(beside(quantity))


def _limits(chosen: Sequence[Sliced], whole: Estimate) -> tuple[float, float]:
    """The range of the axis: all estimates, and of the intervals what does not squeeze them."""
    values = [each.value for each in chosen if each.value is not None] + [whole.value]
    ends = [end for each in chosen for end in bounds_of(each) if math.isfinite(end)]
    low, high = min([*values, *ends, whole.low]), max([*values, *ends, whole.high])
    if whole.quantity.share:
        pad = 0.02 * (high - low) or 0.01
        return max(low - pad, -pad), min(high + pad, 1 + pad)
    finite = [value for value in (low, high) if math.isfinite(value)] or [0.0, 1.0]
    pad = 0.04 * (max(finite) - min(finite)) or 1.0
    return min(finite) - pad, max(finite) + pad


def _mark(axes: Axes, row: int, found: Sliced, limits: tuple[float, float], colours: Palette) -> None:
    if found.value is None:
        return
    low, high = bounds_of(found)
    colour = colours.alarm if found.worse_by is not None else colours.estimate
    style = (0, (1, 1.5)) if found.note else "solid"
    axes.hlines(row, max(low, limits[0]), min(high, limits[1]), color=colour, linewidth=2.2, linestyle=style)
    face = colours.paper if found.note else colour
    marker = "D" if found.worse_by is not None else "o"
    axes.plot([found.value], [row], marker, color=colour, markersize=6, markerfacecolor=face, markeredgewidth=1.6)


def _legend(figure: Figure, height: float, inches: float, chosen: Sequence[Sliced], colours: Palette) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], color=colours.quiet, linestyle=(0, (4, 3)), linewidth=1.1, label="all inputs")]
    if any(each.worse_by is not None for each in chosen):
        marks.append(Line2D([], [], color=colours.alarm, marker="D", linewidth=2.2, label="worse than the others"))
    if any(each.note for each in chosen):
        few = Line2D([], [], color=colours.estimate, marker="o", linestyle=(0, (1, 1.5)), linewidth=2.2)
        few.set(label="too few answers to say", markerfacecolor=colours.paper)
        marks.append(few)
    found = figure.legend(handles=marks, loc="upper left", bbox_to_anchor=(0.1 / inches, 1 - 0.08 / height), ncols=3 if
                          inches > 6 else 1, fontsize=8.5, frameon=False, labelcolor=colours.ink)  # fmt: skip
    found.set_in_layout(False)

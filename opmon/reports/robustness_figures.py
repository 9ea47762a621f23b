"""The figures of a tomography: heat maps of pairs, a cube of voxels, the severity-sum curve, a gallery."""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.reports._drawing import drawn
from opmon.reports.palette import LIGHT, Palette
from opmon.reports.text import shown
from opmon.wording import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from opmon.robustness.result import Tomography

MOST_PAIRS = 15
_WIDE = 30
_SCALE = "cividis"
"""Read the same with every kind of colour blindness, and in grey."""


@drawn
def heat_figure(result: Tomography, *, colours: Palette = LIGHT) -> bytes:
    """The share by the severities of two perturbations, one map per pair, the others at 0; at most 15 maps."""
    from matplotlib.figure import Figure

    pairs = list(itertools.combinations(range(len(result.space.names)), 2))[:MOST_PAIRS]
    across = min(3, len(pairs))
    down = -(-len(pairs) // across)
    wide = max(6.4, 3.1 * across + 0.9)
    figure = Figure(figsize=(wide, 2.95 * down + 0.75), facecolor=colours.paper)
    low = float(result.share[result.tests.order <= 2].min())
    drawn: Any = None
    for place, (first, second) in enumerate(pairs):
        axes = figure.add_subplot(down, across, place + 1)
        share, _ = result.pair(first, second)
        drawn = axes.imshow(share.T, origin="lower", cmap=_SCALE, vmin=min(low, 0.98), vmax=1.0, aspect="auto")
        _numbers(axes, share, low)
        _named(axes, result, first, second, colours)
    figure.subplots_adjust(left=0.9 / wide, right=1 - 1.25 / wide, top=1 - 0.72 / figure.get_figheight(),
                           bottom=0.52 / figure.get_figheight(), wspace=0.28, hspace=0.32)  # fmt: skip
    bar = figure.colorbar(drawn, cax=figure.add_axes((1 - 0.95 / wide, 0.16, 0.18 / wide, 0.62)))
    _percent(bar.ax.yaxis, colours)
    _title(figure, "Share of inputs still right, by pair of perturbations", colours)
    return _png(figure)


@drawn
def voxel_figure(result: Tomography, three: Sequence[int], *, colours: Palette = LIGHT) -> bytes:
    """A cube with one voxel for each test of three perturbations, the others at 0; dark edges: measured."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    if len(set(three)) != 3:
        raise InputError(f"a cube has three different perturbations; got {list(three)}")
    side = result.space.levels + 1
    rows = result.grid(*three)
    share, measured = np.where(rows < 0, np.nan, result.share[rows]), (rows >= 0) & result.measured[rows]
    scale = Normalize(float(np.nanmin(share)), 1.0)
    figure = Figure(figsize=(7.6, 6.4), facecolor=colours.paper)
    axes: Any = figure.add_axes((0.02, 0.03, 0.8, 0.86), projection="3d")
    filled, faces, edges = (
        np.zeros((2 * side - 1,) * 3 + part, kind) for part, kind in (((), bool), ((4,), float), ((4,), float))
    )
    filled[::2, ::2, ::2] = ~np.isnan(share)
    faces[::2, ::2, ::2] = colormaps[_SCALE](scale(np.nan_to_num(share)))
    edges[::2, ::2, ::2] = np.where(measured[..., None], (0.05, 0.05, 0.08, 1.0), (1.0, 1.0, 1.0, 0.5))
    x, y, z = (np.indices((2 * side,) * 3) // 2).astype(float)
    for grid, place in ((x, 0), (y, 1), (z, 2)):  # small cubes with room between them, so that one sees inside
        odd = np.indices((2 * side,) * 3)[place] % 2 == 1
        grid[~odd] += 0.22
        grid[odd] += 0.78
    axes.voxels(x, y, z, filled, facecolors=faces, edgecolors=edges, linewidth=0.6, shade=False)
    for j, axis in zip(three, (axes.xaxis, axes.yaxis, axes.zaxis), strict=True):
        axis.set_ticks(np.arange(side) + 0.5, [str(level) for level in range(side)])
        axis.set_label_text(shown(result.space.names[j], 24), color=colours.ink, fontsize=10)
        axis.set_tick_params(labelsize=8, colors=colours.quiet)
    axes.view_init(elev=22, azim=-52)
    axes.set_box_aspect((1, 1, 1), zoom=0.98)
    bar = figure.colorbar(ScalarMappable(scale, _SCALE), cax=figure.add_axes((0.88, 0.2, 0.02, 0.56)))
    _percent(bar.ax.yaxis, colours)
    _title(figure, "Share still right, by three severities (dark edges: measured)", colours)
    return _png(figure)


@drawn
def curve_figure(result: Tomography, *, colours: Palette = LIGHT) -> bytes:
    """The mean share of all tests with the same severity sum, its range, and the mean quality beside it."""
    from matplotlib.figure import Figure

    points = result.by_severity_sum()
    sums, share = [p[0] for p in points], [p[1] for p in points]
    figure = Figure(figsize=(7.6, 4.2), facecolor=colours.paper)
    axes = figure.add_axes((0.09, 0.15, 0.8, 0.68))
    axes.fill_between(sums, [p[2] for p in points], [p[3] for p in points], color=colours.estimate, alpha=0.16, lw=0,
                      label="lowest to highest test")  # fmt: skip
    axes.plot(sums, share, color=colours.estimate, marker="o", markersize=4, label="mean share still right")
    _plain(axes, colours)
    axes.set_xlabel("severity sum", color=colours.quiet, fontsize=9)
    axes.set_ylim(0, 1.02)
    _percent(axes.yaxis, colours)
    handles, labels = axes.get_legend_handles_labels()
    if result.quality is not None:
        other: Axes = axes.twinx()
        quality = [math.nan if p[4] is None else p[4] for p in points]
        (line,) = other.plot(sums, quality, color=colours.alarm, marker="s", markersize=3.5, linestyle="--")
        other.set_ylabel("distance from the originals", color=colours.alarm, fontsize=9)
        other.tick_params(colors=colours.alarm, labelsize=9, length=0)
        other.set_ylim(bottom=0)
        for side in ("top", "left", "right"):
            other.spines[side].set_visible(False)
        handles, labels = [*handles, line], [*labels, "mean distance (quality)"]
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.01, 0.93), ncols=3, frameon=False, fontsize=9,
                  labelcolor=colours.ink)  # fmt: skip
    _title(figure, "Robustness by severity sum", colours)
    return _png(figure)


@drawn
def gallery_figure(
    rows: Sequence[tuple[str, float, NDArray[np.float32]]], *, colours: Palette = LIGHT, title: str = "What tests show"
) -> bytes:
    """Pictures under some tests: (test in words, share still right, pictures × height × width × channels in [0, 1])."""
    from matplotlib.figure import Figure

    if not rows:
        raise InputError("a gallery shows at least one test")
    across = len(rows[0][2])
    figure = Figure(figsize=(2.6 + 0.95 * across, 0.98 * len(rows) + 0.6), facecolor=colours.paper)
    height = figure.get_figheight()
    for down, (label, share, pictures) in enumerate(rows):
        top = 1 - (0.5 + 0.98 * (down + 1)) / height
        figure.text(0.02, top + 0.44 / height, f"{_stacked(label)}\n{percent(share, 1)} right", fontsize=8.5,
                    color=colours.ink, va="center", linespacing=1.25, parse_math=False)  # fmt: skip
        for place, picture in enumerate(pictures):
            left = (2.5 + 0.95 * place) / figure.get_figwidth()
            axes = figure.add_axes((left, top, 0.9 / figure.get_figwidth(), 0.9 / height))
            image = picture[..., 0] if picture.shape[2] == 1 else picture[..., :3]
            axes.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_axis_off()
    _title(figure, title, colours)
    return _png(figure)


def _stacked(label: str) -> str:
    """A test in words, as many of them on a line as fit beside the pictures, on four lines at most."""
    lines = [""]
    for number, word in enumerate(re.split(r" (?=[+→] )", label)):
        joined = f"{lines[-1]} {word}" if number else word
        if number and len(joined) > _WIDE:
            lines.append(word)
        else:
            lines[-1] = joined
    kept = lines if len(lines) <= 4 else [*lines[:3], f"{lines[3]} …"]
    return "\n".join(shown(line, _WIDE + 4) for line in kept)


def _numbers(axes: Axes, share: NDArray[np.float64], low: float) -> None:
    for (x, y), value in np.ndenumerate(share):
        if np.isfinite(value):
            dark = value < low + 0.55 * (1 - low)
            axes.text(x, y, f"{100 * value:.0f}", ha="center", va="center", fontsize=7.5,
                      color="#ffffff" if dark else "#15181f")  # fmt: skip


def _named(axes: Axes, result: Tomography, first: int, second: int, colours: Palette) -> None:
    axes.set_xlabel(shown(result.space.names[first], 24), fontsize=9, color=colours.ink)
    axes.set_ylabel(shown(result.space.names[second], 24), fontsize=9, color=colours.ink)
    axes.set_xticks(range(result.space.levels + 1))
    axes.set_yticks(range(result.space.levels + 1))
    axes.tick_params(colors=colours.quiet, labelsize=8, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _plain(axes: Axes, colours: Palette) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(colours.quiet)
    axes.grid(axis="y", color=colours.grid, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.tick_params(colors=colours.quiet, labelsize=9, length=0)
    axes.set_facecolor(colours.paper)


def _percent(axis: Axis, colours: Palette) -> None:
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: percent(value, 0)))
    axis.set_tick_params(labelsize=9, colors=colours.quiet, length=0)


def _title(figure: Figure, title: str, colours: Palette) -> None:
    figure.text(0.02, 1 - 0.12 / figure.get_figheight(), title, va="top", fontsize=12.5, fontweight="bold",
                color=colours.ink, parse_math=False)  # fmt: skip


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, metadata={"Software": None})
    return content.getvalue()

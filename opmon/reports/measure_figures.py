"""Pictures of measures that a number does not tell: what is taken for what, and how far scores can be believed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opmon.reports._drawing import drawn
from opmon.reports.lettering import FONT, families, told_apart
from opmon.reports.palette import LIGHT
from opmon.types import Floats
from opmon.wording import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOLD = 12
"""With more classes than this the cells of a matrix have colours and no numbers."""


@dataclass(frozen=True, slots=True)
class MeasureFigure:
    """A picture of a measure, as PNG."""

    name: str
    """The name of its file, without the ending."""
    content: bytes
    text: str
    """What it shows, for whoever cannot see it."""
    key: str = ""
    """What the numbers in it stand for that are there in place of names."""


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """By groups of inputs whose scores are alike: the mean score, the share of them that is so, and its interval."""

    score: Floats
    share: Floats
    low: Floats
    high: Floats
    weight: Floats
    """The share of all inputs that each group has."""


@drawn
def confusion_figure(matrix: Floats, classes: Sequence[str]) -> MeasureFigure:
    """``matrix`` holds the estimated share of all inputs that are truly of the row's class and taken for the column's.

    A cell is coloured by its share of its row, and tells that share and below it the one of all inputs.
    """
    count, colours = len(classes), LIGHT
    size = min(max(3.2 + 0.62 * count, 4.4), 9.0)
    figure, axes = _axes((size + 0.4, size))
    total = matrix.sum(axis=1, keepdims=True)
    rows = np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)
    axes.imshow(rows, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    names, key = told_apart(classes, 14)
    fonts = families(names)
    every = range(0, count, max(1, count // 30))
    beside: dict[str, Any] = {"labels": [names[k] for k in every], "fontfamily": fonts, "parse_math": False}
    turned: dict[str, Any] = {"rotation": 0, "ha": "center"} if count <= 4 else {"rotation": 45, "ha": "right"}
    axes.set_xticks(list(every), **beside, **turned)
    axes.set_yticks(list(every), **beside)
    axes.set_xlabel("the model's answer", color=colours.quiet, fontsize=9)
    axes.set_ylabel("truth", color=colours.quiet, fontsize=9)
    if count <= TOLD:
        for i, j in np.ndindex(count, count):
            ink = "#ffffff" if rows[i, j] > 0.55 else colours.ink
            told = percent(float(rows[i, j]), 0 if count > 5 else 1) if total[i, 0] > 0 else "–"
            below = f"\n{percent(float(matrix[i, j]), 1 if count > 5 else 2)}" if count <= 8 else ""
            size, above = (10 if count <= 6 else 8), "bottom" if below else "center"
            axes.text(j, i, told, ha="center", va=above, color=ink, fontsize=size, linespacing=1.6)
            axes.text(j, i, below, ha="center", va="center", color=ink, fontsize=7, linespacing=1.6)
    _title(
        figure,
        "What is taken for what, of each true class",
        "below, in small, the share of all inputs" if count <= 8 else "",
    )
    text = f"Confusion matrix of {count} classes: of each true class, the estimated share that is taken for each class"
    return MeasureFigure("confusion_matrix", _png(figure), text, key)


@drawn
def reliability_figure(groups: Reliability, what: str) -> MeasureFigure:
    """Scores against what became of them; ``what`` says of what they are."""
    colours = LIGHT
    figure, axes = _axes((5.4, 5.0))
    axes.plot([0, 1], [0, 1], color=colours.quiet, linewidth=1, linestyle=(0, (4, 3)), label="as it should be")
    axes.vlines(
        groups.score, groups.low, groups.high, color=colours.estimate, alpha=0.35, linewidth=4, label="interval"
    )
    sizes = 20 + 260 * groups.weight / max(float(groups.weight.max()), 1e-12)
    axes.scatter(groups.score, groups.share, s=sizes, color=colours.estimate, zorder=3, label="larger: more inputs")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    ticks = np.linspace(0, 1, 6)
    axes.set_xticks(ticks, [percent(float(tick), 0) for tick in ticks])
    axes.set_yticks(ticks, [percent(float(tick), 0) for tick in ticks])
    axes.grid(color=colours.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"the model's score: {what}", color=colours.quiet, fontsize=9)
    axes.set_ylabel("the share that is so, estimated", color=colours.quiet, fontsize=9)
    axes.legend(loc="upper left", frameon=False, fontsize=8, labelcolor=colours.ink, markerscale=0.5)
    _title(figure, "How far scores can be believed", "")
    said = "; ".join(
        f"score {percent(float(score), 0)}: {percent(float(share), 0)}"
        for score, share in zip(groups.score, groups.share, strict=True)
    )
    return MeasureFigure("calibration", _png(figure), f"Scores against the share that is so, estimated. {said}")


def _axes(inches: tuple[float, float]) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=inches, facecolor=LIGHT.paper, layout="constrained")
    axes: Axes = figure.add_subplot()
    axes.tick_params(colors=LIGHT.quiet, labelsize=8.5, length=0)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontfamily(FONT)
    for spine in axes.spines.values():
        spine.set_color(LIGHT.grid)
    return figure, axes


def _title(figure: Figure, title: str, below: str) -> None:
    told = f"{title}\n{below}" if below else title
    figure.suptitle(told, x=0.02, ha="left", fontsize=11, color=LIGHT.ink, fontfamily=FONT)


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=160, metadata={"Software": None})
    return content.getvalue()

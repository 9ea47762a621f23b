"""The frontier of error and failures: one point per technique and variable, relative to simple random sampling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

MARKERS = {"confidence": "o", "dsa": "s", "lsa": "^", "combined": "D", "all": "*", "none": "X"}
COLOURS = {
    "srs": "#1b1f27", "ssrs": "#0072b2", "gbs": "#56b4e9", "css": "#8c8c8c", "sups": "#d55e00", "rhc-s": "#e69f00",
    "2-ups": "#b07d2b", "deepest": "#009e73", "deepest-target": "#7ac9a8", "ces": "#999933", "adaptive": "#9b1b6b",
}  # fmt: skip
AIMS = {"adaptive-estimate": "aim 0", "adaptive": "aim 0.5", "adaptive-expose": "aim 1"}


def frontier(rows: Sequence[dict[str, Any]], path: Path | None) -> None:
    """Geometric means over classification subjects and budgets; without a path, nothing."""
    points = averages(rows)
    if path is None or not points:
        return
    figure, axes = plt.subplots(figsize=(10, 6.5))
    for (technique, variable), (x, y) in points.items():
        own = technique in AIMS
        axes.scatter(
            x,
            y,
            marker=MARKERS.get(variable, "P"),
            s=230 if own and variable == "all" else 55,
            color=COLOURS.get("adaptive" if own else technique, "#555555"),
            zorder=4 if own else 3,
            edgecolor="white",
            linewidth=0.7,
        )
    knob = [points[name, "all"] for name in AIMS if (name, "all") in points]
    if knob:
        axes.plot(*zip(*knob, strict=True), color=COLOURS["adaptive"], linewidth=1.2, linestyle=":", zorder=2)
    for name, text in AIMS.items():
        if (name, "all") in points:
            axes.annotate(text, points[name, "all"], xytext=(8, 7), textcoords="offset points", fontsize=9)
    _axes(axes)
    techniques = [name for name in COLOURS if any(t == name or (name == "adaptive" and t in AIMS) for t, _ in points)]
    variables = [name for name in MARKERS if any(v == name for _, v in points)]
    keys = [Line2D([], [], marker="o", linestyle="", color=COLOURS[name], label=name) for name in techniques]
    keys += [Line2D([], [], marker=MARKERS[n], linestyle="", color="#555555", label=f"by {n}") for n in variables]
    axes.legend(handles=keys, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    axes.set_title("Fewer errors are lower, more failures further right", loc="left", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def averages(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], tuple[float, float]]:
    """Failures and error of a technique on a variable, relative to SRS; variables that every subject has."""
    base = {(row["subject"], row["budget"]): row for row in rows if row["technique"] == "srs"}
    groups: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        srs = base.get((row["subject"], row["budget"]))
        if srs and srs["failures"] and row["failures"] and row["task"] == "classification":
            point = (row["failures"] / srs["failures"], row["rmse"] / srs["rmse"])
            groups[row["technique"], row["variable"]].append(point)
    everywhere = max((len(points) for points in groups.values()), default=0)
    return {
        key: (float(np.exp(np.log(points).mean(axis=0))[0]), float(np.exp(np.log(points).mean(axis=0))[1]))
        for key, points in groups.items()
        if len(points) == everywhere
    }


def _axes(axes: Axes) -> None:
    axes.set(xscale="log", yscale="log", xlabel="failures exposed, relative to SRS", ylabel="RMSE, relative to SRS")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([0.6, 0.7, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6]))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ×"))
    axes.axhline(1, color="#bbbbbb", linewidth=0.8, zorder=1)
    axes.axvline(1, color="#bbbbbb", linewidth=0.8, zorder=1)
    axes.spines[["top", "right"]].set_visible(False)

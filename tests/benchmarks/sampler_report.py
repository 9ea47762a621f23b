"""Tables, figure and significance tests of the sampler benchmark."""

from __future__ import annotations

import csv
import itertools
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

Row = dict[str, Any]
Result = tuple[Row, np.ndarray]
Key = tuple[str, str, str, int]

SAME_DESIGN = {"deepest": ("deepest", "deepest-target")}
"""The released DeepEST code weighs by the target's variable: its range is compared with that, its error with both."""
BIASED = {"2-ups", "gbs", "ces"}
"""Techniques whose released estimator is biased; so is DeepEST's for regression."""


def read_published(path: Path) -> dict[Key, Row]:
    if not path.exists():
        return {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        for technique in SAME_DESIGN.get(row["technique"], (row["technique"],)):
            key = (row["subject"], technique, row["variable"], int(row["budget"]))
            found[key] = {name: float(row[name]) for name in ("rmse", "rmedse", "failures", "bias", "repetitions")}
            biased = (
                technique in BIASED
                or technique == "deepest"
                or (technique in SAME_DESIGN["deepest"] and row["task"] == "regression")
            )
            found[key] |= {"biased": biased}
    return found


def summary(results: list[Result], published: dict[Key, Row]) -> dict[str, list[bool]]:
    """All tables; and whether the published figures of unbiased designs lie inside our 99 % range."""
    console = Console(width=150)
    cell_table(console, results, published)
    technique_table(console, [row for row, _ in results])
    inside = against_published(console, results, published)
    significance(console, [row for row, _ in results])
    return inside


def key_of(row: Row) -> Key:
    return row["subject"], row["technique"], row["variable"], row["budget"]


def cell_table(console: Console, results: list[Result], published: dict[Key, Row]) -> None:
    table = Table(title="Every cell; published figures in brackets", box=None)
    heads = (
        "subject",
        "variable",
        "technique",
        "n",
        "RMSE",
        "RMedSE",
        "bias",
        "bias/se",
        "failures",
        "coverage",
        "half-width",
    )
    for head in heads:
        table.add_column(head, justify="left" if head in heads[:3] else "right")
    for row, _ in results:
        theirs = published.get(key_of(row))
        beside = {name: f" ({theirs[name]:.4g})" if theirs else "" for name in ("rmse", "rmedse", "bias", "failures")}
        table.add_row(
            row["subject"], row["variable"], row["technique"], str(row["budget"]),
            f"{row['rmse']:.4f}{beside['rmse']}", f"{row['rmedse']:.4f}{beside['rmedse']}",
            f"{row['bias']:+.4f}{beside['bias']}", f"{bias_in_errors(row):+.1f}",
            f"{row['failures']:.1f}{beside['failures']}", f"{row['coverage']:.3f}", f"{row['half_width']:.4f}",
        )  # fmt: skip
    console.print(table)


def bias_in_errors(row: Row) -> float:
    """The mean error in Monte Carlo standard errors."""
    return float(row["bias"] / row["standard_error"]) if row["standard_error"] > 0 else 0.0


def technique_table(console: Console, rows: list[Row]) -> None:
    """Per technique: error, failures and distinct failures relative to SRS on the same subject and budget; coverage."""
    base = {(row["subject"], row["budget"]): row for row in rows if row["technique"] == "srs"}
    table = Table(title="Per technique; RMSE and failures relative to SRS, averaged over cells (n >= 200)", box=None)
    heads = (
        "technique",
        "task",
        "cells",
        "RMSE / SRS",
        "worst",
        "failures / SRS",
        "distinct",
        "coverage",
        "cells >= 0.93",
        "half-width / SRS",
    )
    for head in heads:
        table.add_column(head, justify="left" if head in heads[:2] else "right")
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["technique"], row["task"]].append(row)
    for (technique, task), group in sorted(groups.items()):
        pairs = [(row, base.get((row["subject"], row["budget"]))) for row in group if row["budget"] >= 200]
        some = [(row, srs) for row, srs in pairs if srs]
        relative = [row["rmse"] / srs["rmse"] for row, srs in some] or [math.nan]
        exposed = [row["failures"] / srs["failures"] for row, srs in some if srs["failures"]] or [math.nan]
        widths = [row["half_width"] / srs["half_width"] for row, srs in some] or [math.nan]
        holds = [row["coverage"] for row in group]
        apart = [r["distinct_failures"] / srs["distinct_failures"] for r, srs in some if srs["failures"]] or [math.nan]
        figures = [np.mean(relative), np.max(relative), np.mean(exposed), np.mean(apart)]
        table.add_row(
            technique,
            task,
            str(len(group)),
            *(f"{value:.2f}" for value in figures),
            f"{np.mean(holds):.3f}",
            f"{np.mean([coverage >= 0.93 for coverage in holds]):.0%}",
            f"{np.mean(widths):.2f}",
        )
    console.print(table)


def against_published(console: Console, results: list[Result], published: dict[Key, Row]) -> dict[str, list[bool]]:
    """Whether the published RMSE and failures lie in the 99 % range of what their 30 repetitions of ours would give."""
    inside: dict[str, list[bool]] = defaultdict(list)
    ratios = defaultdict(list)
    rng = np.random.default_rng(1)
    for row, runs in results:
        theirs = published.get(key_of(row))
        if not theirs:
            continue
        name = f"{row['technique']} ({row['task']})"
        ratios[name].append(row["rmse"] / theirs["rmse"])
        if not theirs["biased"]:
            picks = rng.integers(0, runs.shape[1], (2000, int(theirs["repetitions"])))
            rmse = np.sqrt((runs[0][picks] ** 2).mean(axis=1))
            failures = runs[1][picks].mean(axis=1)
            inside["rmse"].append(within(theirs["rmse"], rmse))
            inside["failures"].append(within(theirs["failures"], failures))
    if not ratios:
        return inside
    table = Table(title="Against the published figures: our RMSE / theirs, averaged over cells", box=None)
    for head in ("technique", "cells", "mean ratio"):
        table.add_column(head, justify="left" if head == "technique" else "right")
    for name, found in sorted(ratios.items()):
        table.add_row(name, str(len(found)), f"{np.mean(found):.2f}")
    console.print(table)
    if inside:
        console.print(
            f"published, unbiased estimators: RMSE inside our 99 % range in {np.mean(inside['rmse']):.1%} "
            f"and failures in {np.mean(inside['failures']):.1%} of {len(inside['rmse'])} cells"
        )
    return inside


def within(value: float, values: np.ndarray) -> bool:
    low, high = np.quantile(values, [0.005, 0.995])
    return bool(low - 1e-9 <= value <= high + 1e-9)


def significance(console: Console, rows: list[Row]) -> None:
    """Friedman's test over subjects, variables and budgets as blocks, then Dunn's with Holm's correction."""
    for task in sorted({row["task"] for row in rows}):
        table: dict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
        everywhere = [r for r in rows if r["task"] == task and r["variable"] in ("none", "all")]
        for row in (r for r in rows if r["task"] == task and r["variable"] not in ("none", "all")):
            table[row["subject"], row["variable"], row["budget"]][row["technique"]] = row["rmse"]
        for block in table:
            table[block] |= {r["technique"]: r["rmse"] for r in everywhere if (r["subject"], r["budget"]) == block[::2]}
        techniques = sorted(set.intersection(*(set(block) for block in table.values()))) if table else []
        if len(techniques) < 3:
            continue
        values = np.array([[block[name] for name in techniques] for block in table.values()])
        friedman = stats.friedmanchisquare(*values.T)
        ranks = stats.rankdata(values, axis=1).mean(axis=0)
        console.print(
            f"\n{task}: Friedman χ² = {friedman.statistic:.1f}, p = {friedman.pvalue:.2g}; mean rank of RMSE:"
        )
        console.print("  " + ", ".join(f"{techniques[i]} {ranks[i]:.2f}" for i in np.argsort(ranks)))
        same = [f"{a}–{b}" for (a, b), p in dunn_holm(values, techniques).items() if p >= 0.05]
        console.print(f"  not distinguished by Dunn's test with Holm's correction (5 %): {', '.join(same) or 'none'}")


def dunn_holm(values: np.ndarray, techniques: list[str]) -> dict[tuple[str, str], float]:
    """Dunn's rank-sum test between every two techniques, p-values corrected by Holm."""
    blocks, k = values.shape
    ranks = stats.rankdata(values.ravel()).reshape(values.shape)
    total = blocks * k
    _, ties = np.unique(values, return_counts=True)
    correction = (ties**3 - ties).sum() / (12 * (total - 1))
    error = math.sqrt((total * (total + 1) / 12 - correction) * 2 / blocks)
    means = ranks.mean(axis=0)
    pairs = list(itertools.combinations(range(k), 2))
    p = np.array([2 * stats.norm.sf(abs(means[i] - means[j]) / error) for i, j in pairs])
    order = np.argsort(p)
    adjusted = np.minimum(np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p)))), 1)
    return {
        (techniques[pairs[at][0]], techniques[pairs[at][1]]): float(q) for at, q in zip(order, adjusted, strict=True)
    }

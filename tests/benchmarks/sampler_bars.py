"""What the samplers are held to, computed from the cells of the benchmark; bars without cells are left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

Row = dict[str, Any]

EXPOSING = ("sups", "rhc-s", "2-ups", "deepest", "deepest-target")
OURS = ("adaptive", "adaptive-estimate", "adaptive-expose")
AGAINST = {"2-ups": ("", 0.5), "gbs": ("", 0.95), "deepest": ("regression", 0.7)}
"""Techniques whose released code is biased: on which task, and the largest share of its published error."""


class Bar(NamedTuple):
    """One figure beside its limit."""

    name: str
    value: float
    limit: float
    met: bool
    note: str = ""

    def __str__(self) -> str:
        verdict = "met   " if self.met else "MISSED"
        return f"{verdict} {self.name:78} {self.value:7.3f}  ({self.limit:g}) {self.note}"


def bars(rows: Sequence[Row], published: dict[Any, Row], inside: dict[str, list[bool]]) -> list[Bar]:
    return [*_bias(rows), *_published(rows, published, inside), *_coverage(rows), *_default(rows), *_expose(rows)]


def _bias(rows: Sequence[Row]) -> Iterable[Bar]:
    away = {_name(row): abs(row["bias"]) / row["standard_error"] for row in rows if row["standard_error"] > 0}
    away = {name: value for name, value in away.items() if not name.startswith("ces")}
    if away:
        worst = max(away, key=lambda name: away[name])
        yield _below("bias in Monte Carlo standard errors, largest of all cells", away[worst], 4, worst)


def _published(rows: Sequence[Row], published: dict[Any, Row], inside: dict[str, list[bool]]) -> Iterable[Bar]:
    for what, found in inside.items():
        yield _above(f"published {what} inside our 99 % range, share of cells", float(np.mean(found)), 0.95)
    for technique, (task, limit) in AGAINST.items():
        ratios = []
        for row in rows:
            key = (row["subject"], row["technique"], row["variable"], row["budget"])
            if row["technique"] == technique and task in row["task"] and key in published:
                ratios.append(row["rmse"] / published[key]["rmse"])
        if ratios:
            yield _below(f"{technique} {task}: RMSE relative to the published", float(np.mean(ratios)), limit)


def _coverage(rows: Sequence[Row]) -> Iterable[Bar]:
    if rows:
        share = float(np.mean([row["coverage"] >= 0.93 for row in rows]))
        yield _above("coverage at least 0.93, share of all cells", share, 0.95)
    for technique in OURS:
        cells = [row for row in rows if row["technique"] == technique]
        if cells:
            worst = min(cells, key=lambda row: row["coverage"])
            yield _above(f"{technique}: coverage, smallest of all cells", worst["coverage"], 0.94, _name(worst))


def _default(rows: Sequence[Row]) -> Iterable[Bar]:
    base = {(row["subject"], row["budget"]): row for row in rows if row["technique"] == "srs"}

    def ratios(technique: str, key: str, which: Callable[[Row], bool]) -> dict[str, float]:
        cells = [row for row in rows if row["technique"] == technique and which(row)]
        pairs = [(row, base.get((row["subject"], row["budget"]))) for row in cells]
        return {_name(row): row[key] / srs[key] for row, srs in pairs if srs and srs[key]}

    def large(row: Row) -> bool:
        return row["task"] == "classification" and row["budget"] >= 200

    def average(values: dict[str, float]) -> float:
        return float(np.mean(list(values.values()))) if values else math.nan

    widths = ratios("adaptive", "half_width", lambda row: True)
    if widths:
        share = average({name: float(value <= 1) for name, value in widths.items()})
        yield _above("adaptive: half-width not above that of SRS (mid-P), share of cells", share, 0.9)
        yield _below("adaptive: RMSE / SRS, n >= 200", average(ratios("adaptive", "rmse", large)), 0.85)
        yield _above("adaptive: failures / SRS, n >= 200", average(ratios("adaptive", "failures", large)), 1.4)
    errors = ratios("adaptive-estimate", "rmse", lambda row: True)
    if errors:
        worst = max(errors, key=lambda name: errors[name])
        yield _below("adaptive-estimate: RMSE / SRS, largest of all cells", errors[worst], 1.1, worst)


def _expose(rows: Sequence[Row]) -> Iterable[Bar]:
    """Against the technique that exposes most failures in the same cell; draws are counted, as the papers do."""
    there = {row["technique"] for row in rows}
    if not there >= {"adaptive-expose", *EXPOSING}:
        return
    failures, errors, distinct = [], [], []
    for row in rows:
        if row["technique"] != "adaptive-expose" or row["variable"] != "confidence":
            continue
        cell = [r for r in rows if _place(r) == _place(row) and r["technique"] in EXPOSING]
        best = max(cell, key=lambda r: r["failures"])
        failures.append(row["failures"] / best["failures"])
        errors.append(row["rmse"] / best["rmse"])
        distinct.append(row["distinct_failures"] / max(r["distinct_failures"] for r in cell))
    note = f"inputs drawn again left out: {np.mean(distinct):.3f}"
    yield _above("adaptive-expose on confidence: failures / the best's", float(np.mean(failures)), 0.93, note)
    yield _below("adaptive-expose on confidence: RMSE / that technique's", float(np.mean(errors)), 0.6)


def _place(row: Row) -> tuple[Any, ...]:
    return row["subject"], row["variable"], row["budget"]


def _name(row: Row) -> str:
    return f"{row['technique']} {row['subject']} {row['variable']} {row['budget']}"


def _below(name: str, value: float, limit: float, note: str = "") -> Bar:
    return Bar(name, value, limit, value <= limit, note)


def _above(name: str, value: float, limit: float, note: str = "") -> Bar:
    return Bar(name, value, limit, value >= limit, note)

"""The subjects of a benchmark: every CSV of a folder as a population with known truth."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opmon.testing.populations import Population
from opmon.types import Frame

ALIASES = {"Dave_orig": "DO"}
"""Names of subjects in the published tables that differ from the name of their file."""

NO_VARIABLE = {"id", "row id", "outcome", "label", "sut", "uniform"}


@dataclass(frozen=True, eq=False)
class Subject:
    """``population`` holds the outcome of every input; an outcome above ``failing`` counts as a failure."""

    name: str
    task: str
    population: Population
    failing: float


def read_subjects(folder: Path, failing_error: float) -> list[Subject]:
    """All subjects under ``folder/deepsample`` and ``folder/deepest``, by name."""
    files = sorted((folder / "deepsample").glob("*.csv")) + sorted((folder / "deepest").glob("*.csv"))
    if not files:
        raise SystemExit(f"no CSV under {folder}/deepsample or {folder}/deepest")
    return [read_subject(path, failing_error) for path in files]


def read_subject(path: Path, failing_error: float) -> Subject:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {name.strip().lower(): [row[name] for row in rows] for name in rows[0]}
    name = re.sub(r"^model(.+)_final$", r"\1", path.stem)
    if "outcome" in columns:
        task, failing = "classification", 0.5
        outcomes = np.array([value.strip().lower() != "pass" for value in columns["outcome"]], dtype=np.float64)
    else:
        task, failing = "regression", failing_error**2
        label, answer = (np.array(columns[key], dtype=np.float64) for key in ("label", "sut"))
        outcomes = (label - answer) ** 2
    variables = {}
    for column, values in columns.items():
        if column not in NO_VARIABLE:
            variable, chi = auxiliary(column, np.array(values, dtype=np.float64), task)
            variables[variable] = chi.astype(np.float32)
    return Subject(ALIASES.get(name, name), task, Population(Frame(variables), outcomes), failing)


def auxiliary(column: str, values: np.ndarray, task: str) -> tuple[str, np.ndarray]:
    """The auxiliary variable of a column: larger = more suspicious, not negative."""
    if column == "confidence":
        return column, np.clip(1 - values, 0, 1)
    if column.startswith("conf*"):
        return "combined", np.clip(1 - values, 0, 1)
    if task == "classification":
        return column, (values - values.min()) / (values.max() - values.min())
    return column, values - min(values.min(), 0.0)

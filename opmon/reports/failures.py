"""The failures that labelling exposed: a dataset to retrain on, an overview, and a page to read."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.answers import readable
from opmon.errors import InputError
from opmon.failure_words import FAILURE_WORDS, FailureKind
from opmon.problems import Problem
from opmon.types import Json
from opmon.types.grouped import FailureGroup

if TYPE_CHECKING:
    import pyarrow as pa

    from opmon.reports.classes import ClassTable

SHOWN_ROWS = 200
"""The most failures that a page lists; the dataset holds them all."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Failure:
    """One labelled input on which the model is wrong."""

    input_id: str
    truth: str
    prediction: str | None
    confidence: float | None = None
    weight: float | None = 1.0
    """How many inputs of the frame this one stands for: the inverse of its expected number of draws; None where the
    design does not tell."""
    annotators: tuple[str, ...] = ()
    payload: Mapping[str, Json] = field(default_factory=dict)
    error: float | None = None
    """How far off a regression is."""
    problem: Problem = "classification"
    """What kind of answer it is, which says how it is read."""

    def __post_init__(self) -> None:
        if self.weight is not None and not self.weight > 0:
            raise InputError(f"a weight is a number above 0; got {self.weight} for input {self.input_id!r}")

    @property
    def caption(self) -> str:
        return f"said {'nothing' if self.prediction is None else self.said()}, is {self.true()}"

    def said(self, unit: str = "") -> str | None:
        """What the model said, as people read it."""
        return None if self.prediction is None else readable(self.prediction, self.problem, unit)

    def true(self, unit: str = "") -> str:
        """What is true, as people read it."""
        return readable(self.truth, self.problem, unit)


OVERVIEW = ("input_id", "truth", "prediction", "confidence", "weight", "annotators")
"""The columns that every failures table has, in order; that of a regression has ``error`` too. The payload's follow."""


def failures_table(failures: Sequence[Failure], inputs: pa.Table | None = None) -> pa.Table:
    """All failures as one Arrow table: the columns of :data:`OVERVIEW`, then one column per payload column.

    ``inputs`` are their rows as production logged them, which are taken in the payload's place: that is what annotators
    saw. A payload column keeps the name it has in production, so that the table can be appended to training data; one
    that is called like a column of the overview is prefixed with ``payload_``. Values of one column that share no
    Arrow type are stored as JSON text.
    """
    import pyarrow as pa

    schema = pa.schema(
        [
            ("input_id", pa.string()),
            ("truth", pa.string()),
            ("prediction", pa.string()),
            ("confidence", pa.float64()),
            ("weight", pa.float64()),
            ("annotators", pa.list_(pa.string())),
        ]
    )
    rows = [{name: getattr(failure, name) for name in OVERVIEW} for failure in failures]
    table = pa.Table.from_pylist(rows, schema=schema)
    if _overview(failures) != OVERVIEW:
        table = table.append_column("error", pa.array([failure.error for failure in failures], pa.float64()))
    if inputs is not None:
        for name in inputs.column_names:
            table = table.append_column(_free_name(name, table.column_names), inputs[name])
        return table
    for name in dict.fromkeys(column for failure in failures for column in failure.payload):
        values = [failure.payload.get(name) for failure in failures]
        table = table.append_column(_free_name(name, table.column_names), _column(values))
    return table


def write_failures(failures: Sequence[Failure], folder: Path, inputs: pa.Table | None = None) -> tuple[Path, Path]:
    """Writes ``failures.parquet`` (everything) and ``failures.csv`` (without the payload) and returns their paths."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    dataset, overview = folder / "failures.parquet", folder / "failures.csv"
    pq.write_table(failures_table(failures, inputs), dataset, compression="zstd")
    with overview.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = _overview(failures)
        writer.writerow(names)
        for failure in failures:
            values = (getattr(failure, name) for name in names)
            writer.writerow([_cell(value) for value in values])
    return dataset, overview


def failures_page(
    failures: Sequence[Failure],
    path: Path,
    *,
    title: str = "Failures",
    limit: int = SHOWN_ROWS,
    kind: FailureKind = "wrong",
    unit: str = "",
    groups: Sequence[FailureGroup] = (),
    classes: ClassTable | None = None,
) -> Path:
    """Writes an HTML page: what failures have in common, class by class, and a list of the first ``limit`` of them.

    Errors of a regression are in ``unit``.
    """
    from opmon.reports._page import write_page

    return write_page(
        path,
        "failures.html",
        title=title,
        failures=failures[:limit],
        total=len(failures),
        words=FAILURE_WORDS[kind],
        unit=unit,
        groups=groups,
        classes=classes,
    )


def _overview(failures: Sequence[Failure]) -> tuple[str, ...]:
    return (*OVERVIEW, "error") if any(failure.error is not None for failure in failures) else OVERVIEW


def _column(cells: Sequence[object]) -> pa.Array:
    import pyarrow as pa

    values = [_native(cell) for cell in cells]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([None if value is None else json.dumps(value, default=str) for value in values], pa.string())


def _native(value: object) -> object:
    """Arrow takes NumPy's vectors and scalars as they are, and higher dimensions as nested lists."""
    import numpy as np

    return value.tolist() if isinstance(value, np.ndarray) and value.ndim > 1 else value


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"payload_{name}"
    return name


def _cell(value: object) -> str:
    """A CSV cell that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        value = ";".join(value)
    if isinstance(value, float):
        return repr(value)
    text = str(value)
    if text.startswith(_FORMULA) and not _is_number(text):
        return "'" + text
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

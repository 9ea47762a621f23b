"""The drift of the inputs, as a bounded Evidently report. It is advice and never stops a round."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.reports._drift_columns import ColumnDrift as ColumnDrift
from opmon.reports._drift_tables import Prepared, prepare
from opmon.types import Document

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """The result of the comparison."""

    columns: tuple[ColumnDrift, ...] = ()
    """Each column compared."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Columns that were not compared, and why."""
    seconds: float = 0.0
    path: Path | None = None
    """The HTML report, where one was written."""
    problem: str | None = None
    """Why there is no result, in words."""

    @property
    def drifted(self) -> tuple[str, ...]:
        """The names of the columns that drifted, opmon's own among them."""
        return tuple(column.name for column in self.columns if column.drifted)

    @property
    def inputs(self) -> tuple[ColumnDrift, ...]:
        """The columns of the log."""
        return tuple(column for column in self.columns if not column.own)

    @property
    def answers(self) -> tuple[ColumnDrift, ...]:
        """opmon's own columns: the model's prediction and its variables."""
        return tuple(column for column in self.columns if column.own)

    @property
    def share(self) -> float | None:
        """The share of the log's columns that drifted; None where none could be compared."""
        return _share(self.inputs)

    @property
    def answers_share(self) -> float | None:
        """The share of the model's prediction and variables that drifted; None where none could be compared."""
        return _share(self.answers)


def _share(columns: Sequence[ColumnDrift]) -> float | None:
    return sum(column.drifted for column in columns) / len(columns) if columns else None


def drift_report(
    reference: pd.DataFrame,
    current: pd.DataFrame,
    path: Path,
    *,
    max_columns: int = 20,
    max_rows: int = 10_000,
    seed: int = 0,
    own: Collection[str] = (),
) -> DriftSummary:
    """Compares ``current`` with ``reference`` column by column and writes Evidently's report to ``path``.

    At most ``max_rows`` rows of each (a random sample, the same for the same ``seed``) and ``max_columns`` columns are
    compared. Evidently chooses the test by kind of column and number of rows; each column's result names it. The page
    shows names and values with ``‹›`` for ``<>``: Evidently does not escape them. ``own`` names opmon's own columns.

    Whatever goes wrong is logged and told in ``problem``: a drift report is advice, and no reason to lose a round.
    """
    started = time.monotonic()
    try:
        prepared = prepare(reference, current, max_columns=max_columns, max_rows=max_rows, seed=seed)
        prepared, tested = _compare_what_can_be(prepared, path)
    except Exception as exc:  # Evidently may fail in any way
        logger.warning("no drift report: %s: %s", type(exc).__name__, exc, exc_info=True)
        return DriftSummary(problem=f"{type(exc).__name__}: {exc}", seconds=time.monotonic() - started)
    columns = tuple(replace(each, own=each.name in own) for each in (*tested, *prepared.decided.values()))
    if not columns:
        logger.info("no drift report: no column can be compared: %s", prepared.skipped)
    return DriftSummary(
        columns=columns,
        skipped=prepared.skipped,
        seconds=time.monotonic() - started,
        path=path if tested else None,
        problem=None if columns else "no column can be compared",
    )


def _compare_what_can_be(prepared: Prepared, path: Path) -> tuple[Prepared, list[ColumnDrift]]:
    """One column that Evidently fails on must not cost the others: it is found and left out."""
    if not prepared.kinds:
        return prepared, []
    try:
        return prepared, _compare(prepared, path)
    except Exception:  # Evidently may fail in any way
        logger.debug("Evidently failed; trying each column by itself", exc_info=True)
    failed: dict[str, str] = {}
    for name in prepared.kinds:
        try:
            _compare(prepared.only([name], {}), path)
        except Exception as exc:  # Evidently may fail in any way
            logger.warning("column %r is left out of the drift report", prepared.names[name], exc_info=True)
            failed[name] = f"Evidently cannot compare it: {type(exc).__name__}: {exc}"
    left = prepared.only(
        [name for name in prepared.kinds if name not in failed],
        {prepared.names[name]: reason for name, reason in failed.items()},
    )
    if not left.kinds:
        path.unlink(missing_ok=True)
        return left, []
    return left, _compare(left, path)


def _compare(prepared: Prepared, path: Path) -> list[ColumnDrift]:
    import numpy as np

    os.environ.setdefault("DO_NOT_TRACK", "1")  # before the import, so that nothing in Evidently can call home
    from evidently import DataDefinition, Dataset, Report
    from evidently.presets import DataDriftPreset

    definition = DataDefinition(
        numerical_columns=prepared.of_kind("numerical"), categorical_columns=prepared.of_kind("categorical")
    )
    with np.errstate(all="ignore"):  # its tests divide by zero where a category is new
        snapshot = Report([DataDriftPreset(columns=list(prepared.kinds))], include_tests=False).run(
            current_data=Dataset.from_pandas(prepared.current, definition),
            reference_data=Dataset.from_pandas(prepared.reference, definition),
        )
        results = snapshot.dict()["metrics"]
    path.parent.mkdir(parents=True, exist_ok=True)
    snapshot.save_html(str(path))
    return [_column(metric, prepared.names) for metric in results if "column" in metric["config"]]


def _column(metric: Document, names: Mapping[str, str]) -> ColumnDrift:
    """One ``ValueDrift``. Names are read from ``config``: the metric's own name is ambiguous."""
    config = metric["config"]
    value, threshold, method = float(metric["value"]), float(config["threshold"]), str(config["method"])
    drifted = value < threshold if "p_value" in method else value >= threshold
    return ColumnDrift(names[str(config["column"])], drifted, method, value, threshold)

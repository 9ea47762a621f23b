"""Has the distribution of the inputs changed? A bounded Evidently report. Advisory: it never stops a round."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmon.reports.drift_core import ColumnDrift, Prepared, prepare

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """What the comparison found."""

    columns: tuple[ColumnDrift, ...] = ()
    """Each column compared, in the order of the reference."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Columns that were not compared, and why."""
    reference_rows: int = 0
    current_rows: int = 0
    seconds: float = 0.0
    path: Path | None = None
    """The HTML report, where one was written."""
    problem: str | None = None
    """Why there is no result, in words."""

    @property
    def drifted(self) -> tuple[str, ...]:
        """The names of the columns that drifted."""
        return tuple(column.name for column in self.columns if column.drifted)

    @property
    def share(self) -> float | None:
        """The share of compared columns that drifted; None where none could be compared."""
        return len(self.drifted) / len(self.columns) if self.columns else None


def drift_report(
    reference: pd.DataFrame,
    current: pd.DataFrame,
    path: Path,
    *,
    max_columns: int = 20,
    max_rows: int = 10_000,
    seed: int = 0,
) -> DriftSummary:
    """Compares ``current`` with ``reference`` column by column and writes Evidently's report to ``path``.

    At most ``max_rows`` rows of each (a random sample, the same for the same ``seed``) and ``max_columns`` columns are
    compared. Evidently chooses the test by kind of column and number of rows; each column's result names it.

    Whatever goes wrong is logged and told in ``problem``: a drift report is advice, and no reason to lose a round.
    """
    started = time.monotonic()
    try:
        prepared = prepare(reference, current, max_columns=max_columns, max_rows=max_rows, seed=seed)
        compared = _compare(prepared, path) if prepared.compared else []
    except Exception as exc:  # advisory: Evidently may fail in any way
        logger.warning("no drift report: %s: %s", type(exc).__name__, exc, exc_info=True)
        return DriftSummary(problem=f"{type(exc).__name__}: {exc}", seconds=time.monotonic() - started)
    found = {column.name: column for column in (*compared, *prepared.decided)}
    if not found:
        logger.info("no drift report: no column can be compared: %s", prepared.skipped)
    return DriftSummary(
        columns=tuple(found[name] for name in prepared.order if name in found),
        skipped=prepared.skipped,
        reference_rows=len(prepared.reference),
        current_rows=len(prepared.current),
        seconds=time.monotonic() - started,
        path=path if compared else None,
        problem=None if found else "no column can be compared",
    )


def _compare(prepared: Prepared, path: Path) -> list[ColumnDrift]:
    os.environ.setdefault("DO_NOT_TRACK", "1")  # before the import: Evidently would call home unless this is set
    from evidently import DataDefinition, Dataset, Report
    from evidently.presets import DataDriftPreset

    definition = DataDefinition(
        numerical_columns=list(prepared.numerical), categorical_columns=list(prepared.categorical)
    )
    snapshot = Report([DataDriftPreset(columns=list(prepared.compared))], include_tests=False).run(
        current_data=Dataset.from_pandas(prepared.current, definition),
        reference_data=Dataset.from_pandas(prepared.reference, definition),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    snapshot.save_html(str(path))
    return [_column(metric) for metric in snapshot.dict()["metrics"] if "column" in metric["config"]]


def _column(metric: Mapping[str, Any]) -> ColumnDrift:
    """One ``ValueDrift``. Its names are read from ``config``: the metric's own name is not unambiguous."""
    config = metric["config"]
    value, threshold, method = float(metric["value"]), float(config["threshold"]), str(config["method"])
    drifted = value < threshold if "p_value" in method else value >= threshold
    return ColumnDrift(name=str(config["column"]), drifted=drifted, method=method, value=value, threshold=threshold)

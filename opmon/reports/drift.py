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

if TYPE_CHECKING:
    import pandas as pd

    from opmon.reports._drift_columns import Kind, Series

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
    path: Path | None = None,
    *,
    max_columns: int = 20,
    max_rows: int = 10_000,
    seed: int = 0,
    own: Collection[str] = (),
) -> DriftSummary:
    """Compares ``current`` with ``reference`` column by column, with Evidently's tests.

    At most ``max_rows`` rows of each (a random sample, the same for the same ``seed``) and ``max_columns`` columns are
    compared. Evidently chooses the test by kind of column and number of rows; each column's result names it. With a
    ``path``, Evidently's own page is written to it where a column drifted: it takes many times as long as the tests. It
    shows names and values with ``‹›`` for ``<>``: Evidently does not escape them. ``own`` names opmon's own columns.

    Whatever goes wrong is logged and told in ``problem``: a drift report is advice, and no reason to lose a round.
    """
    started = time.monotonic()
    try:
        prepared = prepare(reference, current, max_columns=max_columns, max_rows=max_rows, seed=seed)
        prepared, tested = _tested(prepared)
    except Exception as exc:  # Evidently may fail in any way
        logger.warning("no drift report: %s: %s", type(exc).__name__, exc, exc_info=True)
        return DriftSummary(problem=f"{type(exc).__name__}: {exc}", seconds=time.monotonic() - started)
    columns = tuple(replace(each, own=each.name in own) for each in (*tested, *prepared.decided.values()))
    if not columns:
        logger.info("no drift report: no column can be compared: %s", prepared.skipped)
    wanted = path is not None and tested and any(each.drifted for each in columns)
    return DriftSummary(
        columns=columns,
        skipped=prepared.skipped,
        path=_page(prepared, path) if wanted and path is not None else None,
        seconds=time.monotonic() - started,
        problem=None if columns else "no column can be compared",
    )


def _tested(prepared: Prepared) -> tuple[Prepared, list[ColumnDrift]]:
    """The columns tested one by one: one that Evidently fails on does not cost the others."""
    tested: list[ColumnDrift] = []
    failed: dict[str, str] = {}
    for alias, kind in prepared.kinds.items():
        name = prepared.names[alias]
        try:
            tested.append(_test(name, kind, prepared.reference[alias], prepared.current[alias]))
        except Exception as exc:  # Evidently may fail in any way
            logger.warning("column %r is left out of the drift report", name, exc_info=True)
            failed[alias] = f"Evidently cannot compare it: {type(exc).__name__}: {exc}"
    if not failed:
        return prepared, tested
    left = [alias for alias in prepared.kinds if alias not in failed]
    return prepared.only(left, {prepared.names[alias]: reason for alias, reason in failed.items()}), tested


def _test(name: str, kind: Kind, before: Series, after: Series) -> ColumnDrift:
    """One column by the test that Evidently chooses: what its report computes, without the plots."""
    import numpy as np

    os.environ.setdefault("DO_NOT_TRACK", "1")  # before the import, so that nothing in Evidently can call home
    from evidently.legacy.calculations.stattests import get_stattest
    from evidently.legacy.core import ColumnType

    before, after, column = before.dropna(), after.dropna(), ColumnType("num" if kind == "numerical" else "cat")
    with np.errstate(all="ignore"):  # its tests divide by zero where a category is new
        test = get_stattest(before, after, column, None)
        found = test(before, after, column, None)
    return ColumnDrift(
        name, bool(found.drifted), test.display_name, float(found.drift_score), float(found.actual_threshold)
    )


def _page(prepared: Prepared, path: Path) -> Path | None:
    """Evidently's own report; None where it cannot be written: the results stand without it."""
    import numpy as np

    try:
        from evidently import DataDefinition, Dataset, Report
        from evidently.presets import DataDriftPreset

        definition = DataDefinition(
            numerical_columns=prepared.of_kind("numerical"), categorical_columns=prepared.of_kind("categorical")
        )
        with np.errstate(all="ignore"):
            snapshot = Report([DataDriftPreset(columns=list(prepared.kinds))], include_tests=False).run(
                current_data=Dataset.from_pandas(prepared.current, definition),
                reference_data=Dataset.from_pandas(prepared.reference, definition),
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        snapshot.save_html(str(path))
    except Exception:  # Evidently may fail in any way
        logger.warning("the page of the drift report cannot be written", exc_info=True)
        return None
    return path

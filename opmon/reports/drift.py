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
from opmon.types.drifting import surely

if TYPE_CHECKING:
    import pandas as pd

    from opmon.reports._drift_columns import Kind, Series

logger = logging.getLogger(__name__)

CHI_SQUARE = "chi-square p_value"
FEW_ROWS = 1000
"""Of a reference with no more rows Evidently tests by p-values, and by distances above."""


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


@dataclass(frozen=True, slots=True)
class SliceColumns:
    """How many columns were compared inside of a slice, and which of them drifted."""

    compared: int
    drifted: tuple[str, ...]


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


def drift_in_slices(
    slices: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]], *, max_columns: int = 20, seed: int = 0
) -> dict[str, SliceColumns]:
    """Which columns drifted inside of slices, each given by its rows of the reference and of production.

    At most :data:`FEW_ROWS` rows of each side are compared, so that every test has a p-value; with these one error is
    kept over all columns of all slices (Holm). Slices of too few rows are left out.
    """
    compared: dict[str, list[ColumnDrift]] = {}
    for name, (before, after) in slices.items():
        try:
            prepared, tested = _tested(prepare(before, after, max_columns=max_columns, max_rows=FEW_ROWS, seed=seed))
        except Exception:  # Evidently may fail in any way
            logger.warning("slice %r is left out of the drift report", name, exc_info=True)
            continue
        if found := [*tested, *prepared.decided.values()]:
            compared[name] = found
    surely_drifted = sure([each for columns in compared.values() for each in columns])
    told = {}
    for name, columns in compared.items():
        own, surely_drifted = surely_drifted[: len(columns)], surely_drifted[len(columns) :]
        told[name] = SliceColumns(len(columns), tuple(c.name for c, is_so in zip(columns, own, strict=True) if is_so))
    return told


def sure(columns: Sequence[ColumnDrift]) -> list[bool]:
    """Which columns drifted with one error over all that have a p-value; of others, what their test says."""
    tested = [at for at, column in enumerate(columns) if column.p is not None]
    found = [column.drifted for column in columns]
    for at, is_so in zip(tested, surely([columns[at].p or 0.0 for at in tested]), strict=True):
        found[at] = is_so
    return found


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
    if len(after) <= FEW_ROWS < len(before):  # Evidently would take a distance, which few rows make large by chance
        before = before.sample(FEW_ROWS, random_state=0)
    with np.errstate(all="ignore"):  # its tests divide by zero where a category is new
        test = get_stattest(before, after, column, None)
        found = test(before, after, column, None)
    score, limit = float(found.drift_score), float(found.actual_threshold)
    if test.display_name != CHI_SQUARE:
        return ColumnDrift(name, bool(found.drifted), test.display_name, score, limit)
    p = _homogeneous(before, after)
    return ColumnDrift(name, p < limit, CHI_SQUARE, p, limit)


def _homogeneous(before: Series, after: Series) -> float:
    """The p-value of Pearson's test that both sides have the same shares.

    Evidently holds one side against the other's shares as if these were exact: of two samples of 300 rows and ten
    categories without any drift, it calls half drifted.
    """
    import numpy as np
    import pandas as pd
    from scipy.stats import chi2_contingency

    sides = pd.DataFrame({"before": before.value_counts(), "after": after.value_counts()}).fillna(0).to_numpy()
    return (
        float(chi2_contingency(sides[sides.sum(axis=1) > 0], correction=False).pvalue) if np.all(sides.sum(0)) else 0.0
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

"""What is done to two tables before Evidently sees them: bounds, kinds of columns, and columns it cannot take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opmon.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

FEW_INTEGERS = 10
"""An integer column with no more different values than this holds codes, not amounts."""
MOST_CATEGORIES = 30
"""The most frequent categories that are told apart; the others become one."""
OTHER = "(other)"


@dataclass(frozen=True, slots=True)
class ColumnDrift:
    """The result for one column. ``value`` is a distance or a p-value: ``method`` says which."""

    name: str
    drifted: bool
    method: str
    value: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Two tables with the same columns that can be compared, and what was set aside."""

    reference: pd.DataFrame
    current: pd.DataFrame
    numerical: tuple[str, ...]
    categorical: tuple[str, ...]
    order: tuple[str, ...]
    decided: tuple[ColumnDrift, ...] = ()
    """Columns whose drift is plain without a test."""
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def compared(self) -> tuple[str, ...]:
        both = set(self.numerical) | set(self.categorical)
        return tuple(name for name in self.order if name in both)


def prepare(reference: pd.DataFrame, current: pd.DataFrame, *, max_columns: int, max_rows: int, seed: int) -> Prepared:
    """Bounds both tables and sorts their columns into numerical, categorical, decided and skipped."""
    if max_columns < 1 or max_rows < 2:
        raise InputError(f"max_columns is at least 1 and max_rows at least 2; got {max_columns} and {max_rows}")
    import pandas as pd

    reference, current = _sampled(reference, max_rows, seed), _sampled(current, max_rows, seed)
    kinds: dict[str, str] = {}
    decided: list[ColumnDrift] = []
    skipped: dict[str, str] = {}
    pairs: dict[str, tuple[Any, Any]] = {}
    for name in dict.fromkeys(str(column) for column in (*reference.columns, *current.columns)):
        before, after = _named(reference, name), _named(current, name)
        verdict = _reason_or_drift(name, before, after)
        if isinstance(verdict, str):
            skipped[name] = verdict
        elif len(kinds) + len(decided) >= max_columns:
            skipped[name] = f"only the first {max_columns} columns are compared"
        elif verdict is not None:
            decided.append(verdict)
        else:
            kinds[name], *pair = _comparable(before[0], after[0])
            pairs[name] = (pair[0], pair[1])
    return Prepared(
        reference=pd.DataFrame({name: pair[0] for name, pair in pairs.items()}),
        current=pd.DataFrame({name: pair[1] for name, pair in pairs.items()}),
        numerical=tuple(name for name, kind in kinds.items() if kind == "numerical"),
        categorical=tuple(name for name, kind in kinds.items() if kind == "categorical"),
        order=tuple(dict.fromkeys([*kinds, *(column.name for column in decided)])),
        decided=tuple(decided),
        skipped=skipped,
    )


def _sampled(table: pd.DataFrame, max_rows: int, seed: int) -> pd.DataFrame:
    import numpy as np

    if len(table) <= max_rows:
        return table.reset_index(drop=True)
    rows = np.random.default_rng(seed).choice(len(table), size=max_rows, replace=False)
    return table.iloc[np.sort(rows)].reset_index(drop=True)


def _named(table: pd.DataFrame, name: str) -> list[pd.Series[Any]]:
    """The columns called ``name``: none, one, or more where a file repeats a name."""
    return [table.iloc[:, i] for i, column in enumerate(table.columns) if str(column) == name]


def _reason_or_drift(name: str, before: list[Any], after: list[Any]) -> str | ColumnDrift | None:
    """Why a column is not compared, or its drift where that is plain, or None where a test must tell."""
    if len(before) > 1 or len(after) > 1:
        return "more than one column has this name"
    if not before:
        return "not in the reference"
    if not after:
        return "not in production"
    reason = _unsuitable(before[0]) or _unsuitable(after[0])
    if reason:
        return reason
    old, new = _finite(before[0]).dropna(), _finite(after[0]).dropna()
    if old.empty and new.empty:
        return "empty in both"
    if old.empty or new.empty:
        return ColumnDrift(name, True, "empty on one side" if new.empty else "no longer empty")
    old_values, new_values = set(old.astype(str).unique()), set(new.astype(str).unique())
    if len(old_values) == len(new_values) == 1:
        return "the same value everywhere" if old_values == new_values else ColumnDrift(name, True, "another constant")
    return None


def _unsuitable(column: pd.Series[Any]) -> str | None:
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        return "a point in time always moves"
    if pd.api.types.is_complex_dtype(column):
        return "complex numbers are not compared"
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return None
    filled = column.dropna()
    if filled.map(lambda value: not isinstance(value, (str, int, float, bool))).any():
        return "not a single number or word per input"
    distinct = filled.nunique()
    if distinct > MOST_CATEGORIES and distinct > len(filled) / 2:
        return "text or identifiers: most values are there once"
    return None


def _finite(column: pd.Series[Any]) -> pd.Series[Any]:
    """Infinities are no values: Evidently's histograms fail on them."""
    return column.replace([math.inf, -math.inf], math.nan) if column.dtype.kind == "f" else column


def _comparable(before: pd.Series[Any], after: pd.Series[Any]) -> tuple[str, pd.Series[Any], pd.Series[Any]]:
    """The kind of a column and its two sides in the form Evidently takes."""
    import pandas as pd

    both_numbers = all(
        pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column) for column in (before, after)
    )
    codes = both_numbers and all(pd.api.types.is_integer_dtype(column) for column in (before, after))
    if codes and before.nunique() <= FEW_INTEGERS:
        both_numbers = False
    if both_numbers:
        return "numerical", *(_finite(column.astype("float64")) for column in (before, after))  # type: ignore[return-value]
    frequent = set(before.dropna().astype(str).value_counts().index[:MOST_CATEGORIES])
    return "categorical", _categories(before, frequent), _categories(after, frequent)


def _categories(column: pd.Series[Any], frequent: set[str]) -> pd.Series[Any]:
    import pandas as pd

    words = [None if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)]
    kept = [word if word is None or word in frequent else OTHER for word in words]
    return pd.Series(kept, dtype=object, name=column.name)

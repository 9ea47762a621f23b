"""Two tables made fit to be compared: bounded, with the columns set aside that cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from opmon.errors import InputError
from opmon.reports._drift_columns import FEWEST_VALUES, ColumnDrift, Kind, Sides, comparable, decided, harmless

if TYPE_CHECKING:
    import pandas as pd

    from opmon.reports._drift_columns import Series


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Two tables with the same columns, under names Evidently may see, and what was set aside."""

    reference: pd.DataFrame
    current: pd.DataFrame
    kinds: Mapping[str, Kind]
    names: Mapping[str, str]
    """The true name of each column."""
    decided: Mapping[str, ColumnDrift] = field(default_factory=dict)
    """Columns whose drift is plain without a test, by true name."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Why the others are not compared, by true name."""

    def of_kind(self, kind: Kind) -> list[str]:
        return [name for name, its in self.kinds.items() if its == kind]

    def only(self, names: Iterable[str], skipped: Mapping[str, str]) -> Prepared:
        """The same with fewer columns."""
        kinds = {name: self.kinds[name] for name in names}
        return replace(
            self,
            reference=self.reference[list(kinds)],
            current=self.current[list(kinds)],
            kinds=kinds,
            skipped={**self.skipped, **skipped},
        )


def prepare(reference: pd.DataFrame, current: pd.DataFrame, *, max_columns: int, max_rows: int, seed: int) -> Prepared:
    """Samples the rows and sorts the columns into those to compare, those already decided, and those skipped."""
    if max_columns < 1 or max_rows < FEWEST_VALUES:
        raise InputError(
            f"max_columns is at least 1 and max_rows at least {FEWEST_VALUES}; got {max_columns} and {max_rows}"
        )
    import pandas as pd

    reference, current = _sampled(reference, max_rows, seed), _sampled(current, max_rows, seed)
    sides: dict[str, Sides] = {}
    names: dict[str, str] = {}
    plain: dict[str, ColumnDrift] = {}
    skipped: dict[str, str] = {}
    for name in dict.fromkeys(str(column) for column in (*reference.columns, *current.columns)):
        if len(sides) + len(plain) >= max_columns:
            skipped[name] = f"only the first {max_columns} columns are compared"
            continue
        before, after = _named(reference, name), _named(current, name)
        result = _not_on_both_sides(before, after) or decided(name, before[0], after[0])
        if isinstance(result, str):
            skipped[name] = result
        elif result is not None:
            plain[name] = result
        else:
            both = comparable(before[0], after[0])
            alias = _alias(f"{name} (×1e{both.power})" if both.power else name, names)
            names[alias], sides[alias] = name, both
    return Prepared(
        reference=pd.DataFrame({alias: side.before for alias, side in sides.items()}),
        current=pd.DataFrame({alias: side.after for alias, side in sides.items()}),
        kinds={alias: side.kind for alias, side in sides.items()},
        names=names,
        decided=plain,
        skipped=skipped,
    )


def _sampled(table: pd.DataFrame, max_rows: int, seed: int) -> pd.DataFrame:
    import numpy as np

    if len(table) > max_rows:
        rows = np.random.default_rng(seed).choice(len(table), size=max_rows, replace=False)
        table = table.iloc[np.sort(rows)]
    return table.reset_index(drop=True).infer_objects()


def _named(table: pd.DataFrame, name: str) -> list[Series]:
    """The columns called ``name``: none, one, or more where a file repeats a name."""
    return [table.iloc[:, i] for i, column in enumerate(table.columns) if str(column) == name]


def _not_on_both_sides(before: Sequence[object], after: Sequence[object]) -> str | None:
    if len(before) > 1 or len(after) > 1:
        return "more than one column has this name"
    if not before:
        return "not in the reference"
    return None if after else "not in production"


def _alias(name: str, taken: Mapping[str, str]) -> str:
    """A name that is safe in Evidently's page, and not used yet."""
    alias = harmless(name) or "(no name)"
    number = 2
    while alias in taken:
        alias, number = f"{harmless(name)} ({number})", number + 1
    return alias

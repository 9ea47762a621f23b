"""One column on two sides: whether it can be compared, whether its drift is plain, and its form for Evidently."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from opmon.reports.text import shown

if TYPE_CHECKING:
    import pandas as pd

    Series: TypeAlias = pd.Series[Any]
    """A column of whatever the log holds."""

FEWEST_VALUES = 30
"""With fewer values on one side, a test says more about chance than about drift."""
FEW_INTEGERS = 10
"""An integer column with no more different values than this holds codes, not amounts."""
MOST_CATEGORIES = 30
"""The most frequent categories that are told apart; the others become one."""
OTHER = "(other)"
LARGEST = 1e150
"""Beyond it a variance overflows."""

SMALL = 0.01
"""Below this standard deviation a column is multiplied by a power of ten."""

Kind = Literal["numerical", "categorical"]


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """A column as Evidently takes it: what its values are, and the power of ten they were multiplied by."""

    kind: Kind
    before: Series
    after: Series
    power: int = 0


@dataclass(frozen=True, slots=True)
class ColumnDrift:
    """The result for one column. ``value`` is a distance or a p-value: ``method`` says which."""

    name: str
    drifted: bool
    method: str
    value: float | None = None
    threshold: float | None = None
    own: bool = False
    """Whether it is opmon's own: the model's prediction, or a variable computed from its answer."""

    @property
    def p(self) -> float | None:
        """The p-value of its test; None where that gives a distance, or was not needed."""
        return self.value if self.method.endswith("p_value") else None


def decided(name: str, before: Series, after: Series) -> str | ColumnDrift | None:
    """Why a column is not compared, or its drift where that is plain, or None where a test must tell."""
    reason = _unsuitable(before) or _unsuitable(after)
    if reason:
        return reason
    old, new = _values(before), _values(after)
    if old.empty and new.empty:
        return "empty on both sides"
    if (old.empty or new.empty) and min(len(before), len(after)) >= FEWEST_VALUES:
        return ColumnDrift(name, True, "empty in production" if new.empty else "empty in the reference alone")
    if min(len(old), len(new)) < FEWEST_VALUES:
        return f"fewer than {FEWEST_VALUES} values on one side"
    before_one, after_one = _only_value(old), _only_value(new)
    if before_one is None or after_one is None:
        return None
    return "the same value everywhere" if before_one == after_one else ColumnDrift(name, True, "another constant")


def comparable(before: Series, after: Series) -> Sides:
    """Both sides in the form Evidently takes."""
    if _is_number(before) and _is_number(after) and not _is_code(before, after):
        return _numerical(before.astype("float64"), after.astype("float64"))
    return _categorical(_words(before), _words(after))


def _numerical(before: Series, after: Series) -> Sides:
    """Without infinities; to nine digits, because a constant with rounding errors has too small a range to bin.

    These are digits of a usual value: beside 10¹² all that lies between 0 and 500 would be the same. Evidently's normed
    distance takes no deviation below 0.001 for real, so small numbers are multiplied up.
    """
    before, after = (side.where(side.abs() < math.inf) for side in (before, after))
    largest = max(float(before.abs().max()), float(after.abs().max())) or 1.0
    deviation = float((before / largest).std()) * largest
    power = min(300, math.ceil(-math.log10(deviation))) if 0 < deviation < SMALL else 0
    usual = _usual(before, after)
    before, after = (_rounded(side, usual) * 10.0**power for side in (before, after))
    return Sides("numerical", before, after, power)


def _usual(before: Series, after: Series) -> float:
    """The size of a usual value: the median of those that are not 0."""
    import pandas as pd

    sizes = pd.concat([before, after]).abs()
    return float(sizes[sizes > 0].median()) if (sizes > 0).any() else 1.0


def _rounded(side: Series, usual: float) -> Series:
    """To nine digits of a usual value; one that is many times as large has no more than these anyway."""
    return side.where(side.abs() > 1e6 * usual, (side / usual).round(9) * usual)


def _categorical(before: Series, after: Series) -> Sides:
    """The frequent values of the reference, and one category for all others.

    A few values that the reference has never seen are left out: a chi-square test takes one of them for proof.
    """
    frequent = set(before.dropna().value_counts().index[:MOST_CATEGORIES])
    before, after = (
        side.map(lambda word: word if word is None or word in frequent else OTHER) for side in (before, after)
    )
    if not (before == OTHER).any() and (after == OTHER).sum() <= max(2, 0.01 * len(after)):
        after = after.where(after != OTHER, None)
    return Sides("categorical", before, after)


def _unsuitable(column: Series) -> str | None:
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        return "a point in time always moves"
    if column.dtype.kind in "mc":
        return "a length of time" if column.dtype.kind == "m" else "complex numbers"
    if _is_number(column):
        largest = column.astype("float64").abs().replace(math.inf, math.nan).max()
        return "numbers too large to compare" if largest > LARGEST else None
    filled = column.dropna()
    if filled.map(lambda value: not isinstance(value, (str, numbers.Number))).any() and column.dtype == object:
        return "not a single number or word per input"
    distinct = filled.astype(str).nunique()
    if distinct > MOST_CATEGORIES and distinct > len(filled) / 2:
        return "text or identifiers: most values occur once"
    return None


def _is_number(column: Series) -> bool:
    import pandas as pd

    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _is_code(before: Series, after: Series) -> bool:
    import pandas as pd

    whole = pd.api.types.is_integer_dtype(before) and pd.api.types.is_integer_dtype(after)
    return whole and before.nunique() <= FEW_INTEGERS


def _values(column: Series) -> Series:
    """The values that are there; infinities do not count."""
    filled = column.dropna()
    return filled[filled.astype("float64").abs() < math.inf] if _is_number(column) else filled


def _only_value(values: Series) -> str | float | None:
    """The value that a constant column has everywhere."""
    if _is_number(values):
        low, high = float(values.min()), float(values.max())
        return float(f"{low:.8g}") if math.isclose(low, high, rel_tol=1e-9) else None
    words = values.astype(str)
    return str(words.iloc[0]) if words.nunique() == 1 else None


def _words(column: Series) -> Series:
    import pandas as pd

    missing = column.isna()
    words = [None if gone else harmless(value) for value, gone in zip(column, missing, strict=True)]
    return pd.Series(words, dtype=object)


def harmless(value: object) -> str:
    """A name or category as Evidently may see it: it writes both into a script without escaping them.

    >>> harmless("</script><b>")
    '‹/script›‹b›'
    """
    return shown(value, 60).replace("<", "‹").replace(">", "›")

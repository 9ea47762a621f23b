"""What pages say in words of their own agrees with what stands beside it."""

from __future__ import annotations

from opmon.reports.drift import ColumnDrift, DriftSummary
from opmon.types.drifting import DriftedPart, RoundDrift
from opmon.web.words import drift_rows


def column(name: str, *, drifted: bool, own: bool = False) -> ColumnDrift:
    value = 0.04 if drifted else 0.6
    return ColumnDrift(name=name, method="K-S p_value", value=value, threshold=0.05, drifted=drifted, own=own)


def test_a_column_drifted_where_the_sentences_say_so() -> None:
    """They are corrected for how many were looked at; what is beyond its own limit alone may be chance."""
    columns = (
        column("age", drifted=False),
        column("city", drifted=True),
        column("model gini", drifted=True, own=True),
        column("model margin", drifted=True, own=True),
    )
    parts = (DriftedPart("inputs", 2, ()), DriftedPart("scores", 2, ("gini",)))
    drift = RoundDrift(parts, "not known", None, None, None, (), (), ())
    told = [(each.name, standing) for each, standing in drift_rows(DriftSummary(columns), drift)]
    assert told == [("model gini", "surely"), ("city", "perhaps"), ("model margin", "perhaps"), ("age", "no")]
    alone = [standing for _, standing in drift_rows(DriftSummary(columns), None)]
    assert alone == ["surely", "surely", "surely", "no"]

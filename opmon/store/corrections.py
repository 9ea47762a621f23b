"""Estimates corrected for annotators who err, kept beside the plain ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy.engine import Connection

from opmon.store import schema
from opmon.store.schema import Row
from opmon.types import Estimate

__all__ = ["COLUMNS", "SETTLED", "TABLE", "Corrected", "add", "of"]

SETTLED = "the same as without, for hardly an error is left in the answers that count"
"""What is said of a correction that does not move the estimate."""

TABLE = schema.corrections


@dataclass(frozen=True)
class Corrected:
    """An estimate corrected for annotators who err, or why there is none, and how far they agree."""

    value: float | None
    low: float | None
    high: float | None
    standard_error: float | None
    why: str
    """Why there is none; empty where there is one."""
    checks: int
    """Answers that another one, or a known truth, is there to check."""
    agreement: float | None
    """The share of pairs of answers to one input that are the same; None of numbers, which seldom are."""
    alpha: float | None
    """Krippendorff's alpha; None where the answers leave it undefined."""

    @property
    def interval(self) -> tuple[float, float, float] | None:
        """The value and its bounds; None where there is none."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return self.value, self.low, self.high

    def moves(self, plain: Estimate) -> bool:
        """Whether it reads otherwise than the plain estimate. Where errors have been settled it seldom does."""
        own = plain.value, plain.low, plain.high
        return self.interval is None or plain.quantity.texts(*self.interval) != plain.quantity.texts(*own)


COLUMNS = tuple(column.label(f"corrected_{column.name}") for column in TABLE.columns)
"""What a query of estimates takes along, for :func:`of`."""


def add(connection: Connection, estimate: int, corrected: Corrected) -> None:
    """Keep the correction of an estimate, by the estimate's number."""
    connection.execute(TABLE.insert().values(estimate_id=estimate, **asdict(corrected)))


def of(row: Row) -> Corrected | None:
    """The correction in a row that has :data:`COLUMNS`; None where the estimate has none."""
    if row.corrected_estimate_id is None:
        return None
    return Corrected(
        value=row.corrected_value,
        low=row.corrected_low,
        high=row.corrected_high,
        standard_error=row.corrected_standard_error,
        why=row.corrected_why,
        checks=row.corrected_checks,
        agreement=row.corrected_agreement,
        alpha=row.corrected_alpha,
    )

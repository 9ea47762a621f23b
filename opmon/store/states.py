"""The states of a round: ``opened → scored → drawn → labelling → estimated → closed``, or given up on the way."""

from __future__ import annotations

from enum import StrEnum


class RoundState(StrEnum):
    """How far a round has come."""

    OPENED = "opened"
    """Its inputs are known: the cursor has moved."""
    SCORED = "scored"
    """Its frame is there: predictions and auxiliary variables."""
    DRAWN = "drawn"
    """The first wave of tasks is queued."""
    LABELLING = "labelling"
    """Annotators are at it."""
    ESTIMATED = "estimated"
    """Its estimate is final."""
    CLOSED = "closed"
    """It was decided, and told to MLflow."""
    ABANDONED = "abandoned"
    """Somebody gave it up."""

    @property
    def is_over(self) -> bool:
        """Whether nothing moves it any more but late labels."""
        return self in (RoundState.CLOSED, RoundState.ABANDONED)

"""A task for an annotator, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from opmon.types.documents import Json
from opmon.types.moments import require_aware


@dataclass(frozen=True, slots=True)
class Task:
    """One input to label. ``payload`` is what the annotator sees; the model's answer is not in it."""

    id: int
    monitor: str
    round: int
    input_id: str
    payload: Mapping[str, Json]
    key: str = ""
    """Names the task and the database that asked (:mod:`opmon.store.task_keys`): an answer is bound by it."""
    classes: tuple[str, ...] = ()
    """What may be answered; empty where that is a number, or not known."""
    due_at: datetime | None = None
    """When its round is estimated with the answers there are."""
    prediction: str | None = None
    """The model's answer, where the monitor shows it to annotators."""
    needs: int = 1
    """How many annotators are to speak of it; nothing for them to see."""


@dataclass(frozen=True, slots=True)
class Label:
    """What an annotator said of a task: the truth, or None for "I cannot tell" (a skip)."""

    task_id: int
    annotator: str
    truth: str | None
    at: datetime
    why: str | None = None
    """Why it was skipped, in the annotator's words."""
    seconds: float | None = None
    """How long the annotator took."""

    def __post_init__(self) -> None:
        require_aware(self.at, "at")

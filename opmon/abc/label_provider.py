"""The contract of label providers, which hand tasks to annotators and bring back their answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from opmon.abc.plugin import Plugin
from opmon.errors import InputError
from opmon.types import Guide, Task
from opmon.types.moments import require_aware


@dataclass(frozen=True, slots=True)
class Said:
    """An annotator's answer to a task, as a label provider hears it; ``truth`` is None for a skip.

    The task is named by its key; by the input alone only where nobody was asked, such as for a truth that comes by
    itself. A correction is said later by the same annotator.
    """

    task_key: str | None
    annotator: str
    truth: str | None
    at: datetime
    input_id: str | None = None
    why: str | None = None
    """Why it was skipped, in the annotator's words."""
    seconds: float | None = None
    """How long the annotator took."""

    def __post_init__(self) -> None:
        require_aware(self.at, "at")
        if self.task_key is None and self.input_id is None:
            raise InputError("an answer names its task_key, or its input_id")


@dataclass(frozen=True, slots=True)
class Pulled:
    """The answers that a label provider has heard since it was last asked, in the order in which they were given."""

    said: Sequence[Said]
    cursor: str
    """Where the next :meth:`LabelProvider.pull` begins."""
    problems: Sequence[str] = ()
    """Answers that could not be read, and why, for the user."""


class LabelProvider(Plugin, ABC):
    """Hands tasks to annotators and brings back what they say. Tasks are known by their key.

    It may be called again with what it was called with before: opmon is killed between handing tasks over and noting
    that it did, or between hearing answers and keeping them, and asks again. A call that takes longer than
    ``patience`` is not waited for, and a provider that fails is left alone for a while; both cost nothing else.

    Raises :class:`~opmon.errors.UnavailableError` where trying again later is right.
    """

    patience: ClassVar[float] = 60.0
    """For how many seconds a call is waited for."""
    batch: ClassVar[int] = 500
    """The most tasks that are handed over in one call."""

    @property
    def asks(self) -> str | None:
        """Whom it asks, in words and without secrets: where that does not answer, all monitors that name the same leave
        it alone for a while. None: nobody else asks there."""
        return None

    def bind(self, monitor: str, guide: Guide) -> Self:
        """Return the provider for the tasks of one monitor; ``guide`` is what its annotators are told."""
        return self

    def check(self) -> str:
        """One line that says what answered, or an error."""
        return f"{type(self).__name__} needs no check"

    @abstractmethod
    def push(self, tasks: Sequence[Task]) -> None:
        """Hand tasks over, in this order; one that is there already, by its key, stays as it is."""

    @abstractmethod
    def pull(self, since: str) -> Pulled:
        """The answers given since the cursor ``since``; ``""`` is the beginning. One that comes twice counts once."""

    def forget(self, keys: Collection[str]) -> Collection[str]:
        """Remove what these tasks show; gives those of them that it surely does not show any more.

        It may be asked again, and of tasks that it never had."""
        return ()

    def reconcile(self, open_keys: Collection[str]) -> Collection[str]:
        """The tasks among ``open_keys``, all that were handed over and wait for an answer, that it still has.

        The others are handed over again. What is not among ``open_keys`` need not be asked any more.
        """
        return open_keys

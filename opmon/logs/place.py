"""Where work is going on: which monitor, which round, which stage of it. Each line of the log is said there.

Whoever watches the work hears when it goes on: :func:`watched` names the watcher, and each :func:`within` tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Place:
    """A place in the work."""

    monitor: str | None = None
    round: int | None = None
    stage: str | None = None
    waiting_for: str | None = None
    """Whose answer is waited for there, for longer than usual."""
    at_most: float | None = None
    """For how many seconds: it ends by itself then. Of this very place, not of those within it."""

    def __str__(self) -> str:
        """The place in words.

        >>> print(Place("digits", 5, "score")), print(Place("digits", None, "open"))
        score of round 5
        open
        (None, None)
        >>> str(Place("digits", 5, "score", "the source s3://logs"))
        'score of round 5, waiting for the source s3://logs'
        """
        where = "" if self.round is None else f"round {self.round}"
        at = " of ".join(part for part in (self.stage or "", where) if part)
        return ", ".join(part for part in (at, self.waiting_for and f"waiting for {self.waiting_for}") if part)


Watcher = Callable[[Place], AbstractContextManager[object]]
"""Is entered with each place, and left when the work leaves it."""

NOWHERE = Place()
_place: ContextVar[Place] = ContextVar("opmon_place", default=NOWHERE)
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("opmon_watchers", default=())


def place() -> Place:
    """Where the work of this thread is going on."""
    return _place.get()


@contextmanager
def within(**where: str | float | None) -> Iterator[None]:
    """Work there: ``monitor``, ``round``, ``stage``, ``waiting_for``; what is not named stays as it is."""
    new = replace(_place.get(), **{"at_most": None, **where})  # type: ignore[arg-type]
    token = _place.set(new)
    try:
        with ExitStack() as stack:
            for watcher in _watchers.get():
                stack.enter_context(watcher(new))
            yield
    finally:
        _place.reset(token)


@contextmanager
def watched(*watchers: Watcher) -> Iterator[None]:
    """Let these watchers hear of all work inside."""
    token = _watchers.set((*_watchers.get(), *watchers))
    try:
        yield
    finally:
        _watchers.reset(token)

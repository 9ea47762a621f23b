"""The thread that appends: whoever waits while the disk is at work shares its next turn."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from opmon import disk
from opmon.ingest.event import Event
from opmon.ingest.journal import Journal

log = logging.getLogger(__name__)

_TURN = 0.5
"""Seconds after which is looked whether a segment is to be closed."""


@dataclass(frozen=True, slots=True)
class _Wish:
    stream: str
    events: Sequence[Event]
    answer: asyncio.Future[int]


@dataclass
class Writer:
    """Appends to the journal for any number of requests at a time."""

    journal: Journal
    on_turn: Callable[[], None] = lambda: None
    """Called between writes, now and then."""
    _wishes: list[_Wish] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _ends: bool = False

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._work, name="ingest-writer", daemon=True)
        self._thread.start()

    def keep(self, stream: str, events: Sequence[Event]) -> asyncio.Future[int]:
        """How many of the events were new, once all are on the disk; an OSError where the disk takes no more."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        with self._changed:
            self._wishes.append(_Wish(stream, events, answer))
            self._changed.notify()
        return answer

    def close(self) -> None:
        """End after what was asked for so far; the segment is closed."""
        with self._changed:
            self._ends = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wishes or self._ends, _TURN)
                wishes, self._wishes, ends = self._wishes, [], self._ends
            if wishes:
                self._append(wishes)
            try:
                if ends:
                    self.journal.close_segment()
                    return
                self.journal.close_if_due()
            except OSError as exc:
                log.warning("a segment of what was sent could not be closed: %s", disk.why(exc))
                if ends:
                    return
            self.on_turn()

    def _append(self, wishes: Sequence[_Wish]) -> None:
        new: Sequence[int] = ()
        problem: BaseException | None = None
        try:
            new = self.journal.append([(wish.stream, wish.events) for wish in wishes])
        except OSError as exc:
            log.warning("what was sent cannot be kept, and is not acknowledged: %s", disk.why(exc))
            problem = exc
        except Exception as exc:
            log.exception("what was sent could not be kept, and is not acknowledged")
            problem = exc
        try:
            wishes[0].answer.get_loop().call_soon_threadsafe(_tell, wishes, new, problem)
        except RuntimeError:  # nobody listens any more
            log.info("%d senders left before they could be told", len(wishes))


def _tell(wishes: Sequence[_Wish], new: Sequence[int], problem: BaseException | None) -> None:
    for place, wish in enumerate(wishes):
        if wish.answer.done():
            continue
        if problem is None:
            wish.answer.set_result(new[place])
        else:
            wish.answer.set_exception(problem)

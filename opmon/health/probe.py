"""A question whose answer may take for ever: whoever asks waits a little for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


class Unanswered(Exception):
    """There was no answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        """For how long the question has been open."""


@dataclass
class Probe(Generic[T]):
    """Asks in a thread of its own, one at a time; an answer is good for ``remembered`` seconds."""

    ask: Callable[[], T]
    name: str
    remembered: float = 0.0
    _answer: tuple[float, T] | None = field(default=None, repr=False)
    _problem: Exception | None = field(default=None, repr=False)
    _asking: threading.Thread | None = field(default=None, repr=False)
    _since: float = field(default=0.0, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def answer(self, seconds: float) -> T:
        """The answer, waited for at most so long; :class:`Unanswered` where there is none by then."""
        with self._lock:
            known = self._answer
            if known is not None and time.monotonic() - known[0] < self.remembered:
                return known[1]
            if self._asking is None or not self._asking.is_alive():
                self._asking = threading.Thread(target=self._ask, name=self.name, daemon=True)
                self._since = time.monotonic()
                self._asking.start()
            asking, since = self._asking, self._since
        asking.join(seconds)
        if asking.is_alive():
            raise Unanswered(time.monotonic() - since)
        if self._problem is not None:
            raise self._problem
        if self._answer is None:
            raise Unanswered(time.monotonic() - since)
        return self._answer[1]

    def _ask(self) -> None:
        try:
            self._answer, self._problem = (time.monotonic(), self.ask()), None
        except Exception as exc:  # noqa: BLE001 - raised where it was asked
            self._problem = exc

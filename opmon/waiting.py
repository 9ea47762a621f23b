"""Who may hang is asked in a thread of its own, and waited for only so long.

Python cannot interrupt a thread that waits for a disk, a socket or a library. So whoever asks a source or a label
provider goes on without an answer when its time is over: the thread is left behind, and until it ends nothing more is
asked there on behalf of the same monitor. A target that kept callers waiting twice running is left alone by all
monitors of the process for a while (:mod:`opmon.outgoing.breaker`). One that answered late gets more time from then on.
"""

from __future__ import annotations

import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from opmon.errors import OpmonError, UnavailableError
from opmon.logs.place import within
from opmon.outgoing import overdue
from opmon.outgoing.breaker import Breaker, breaker_of
from opmon.outgoing.buffer import Buffer

T = TypeVar("T")

TOLD_AFTER = 5.0
"""Seconds after which it is told what is waited for."""
KEPT_WAITING = 1.0
"""A failure that took so many seconds is one of a target that does not answer."""


@dataclass(frozen=True)
class _Hung:
    thread: threading.Thread
    since: datetime


_hung: dict[str, _Hung] = {}
_slowest: dict[str, float] = {}
_lock = threading.Lock()


def hanging() -> dict[str, datetime]:
    """The calls of this process that nobody waits for any more and that have not ended: on whose behalf, since when."""
    with _lock:
        for key in [key for key, each in _hung.items() if not each.thread.is_alive()]:
            del _hung[key]
        return {key: each.since for key, each in _hung.items()}


def start(function: Callable[[], T], name: str) -> tuple[Future[T], threading.Thread]:
    """Call ``function`` in a thread of its own, at the caller's place in the work."""
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(function))
        except BaseException as exc:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(exc)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return future, thread


def told_as_waiting(shown: str, at_most: float | None = None) -> AbstractContextManager[None]:
    """Whoever watches the work hears what it waits for, and for how many seconds at most where there is a limit."""
    return within(waiting_for=shown, at_most=at_most)


def ends_within(seconds: float) -> AbstractContextManager[None]:
    """Whoever watches the work hears that this step of it ends by itself, and need not be given up sooner."""
    return within(at_most=seconds)


@dataclass(frozen=True)
class Asking:
    """Whom to ask, and how long to wait for an answer."""

    kind: str
    """What it is, as the metrics count it: ``source``, ``label provider``."""
    key: str
    """On whose behalf: while one call hangs no other is begun under the same key."""
    shown: str
    """Who, in words."""
    target: str
    """Whom the breaker leaves alone: those that ask the same target wait together."""
    seconds: float
    interrupts: bool = False
    """Whether a call that is given up is ended where it computes in Python: for code that holds nothing of others'."""

    def call(self, function: Callable[[], T]) -> T:
        """What ``function`` gives; UnavailableError where it takes too long, or is not worth asking now."""
        with self._let_in():
            begun = time.monotonic()

            def timed() -> T:
                result = function()
                self._note_slow(time.monotonic() - begun)
                return result

            future, thread = start(timed, self.key)
            self._wait(lambda seconds: bool(wait((future,), seconds).done), thread)
            return future.result()

    def each(self, items: Callable[[], Iterable[T]], size: Callable[[T], int]) -> Iterator[T]:
        """The items, each of which is waited for; a few small ones are made before they are used."""
        with self._let_in() as breaker:
            buffer: Buffer[T] = Buffer(size)
            _, thread = start(lambda: buffer.fill(items, self._note_slow), self.key)
            try:
                while not buffer.is_over:
                    self._wait(buffer.wait, thread)
                    found = buffer.take()
                    breaker.answered()
                    yield from found
            finally:
                buffer.stop()

    def _wait(self, wait_for: Callable[[float], bool], thread: threading.Thread) -> None:
        seconds = max(self.seconds, 2 * _slowest.get(self.key, 0.0))
        if wait_for(min(TOLD_AFTER, seconds)):
            return
        if seconds > TOLD_AFTER:
            with told_as_waiting(self.shown, seconds):
                if wait_for(seconds - TOLD_AFTER):
                    return
        with _lock:
            _hung[self.key] = _Hung(thread, datetime.now(UTC))
        if self.interrupts and thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Interrupted))
        raise _Late(f"{self.shown} did not answer within {seconds:g} s; nothing is lost")

    @contextmanager
    def _let_in(self) -> Iterator[Breaker]:
        since = hanging().get(self.key)
        if since is not None:
            raise UnavailableError(
                f"{self.shown} still hangs in an earlier call, which was given up at {since:%H:%M:%S} UTC; "
                "nothing more is asked of it until that ends"
            )
        with trying(self.kind, self.target, self.shown) as breaker:
            yield breaker

    def _note_slow(self, seconds: float) -> None:
        """One that answers late is given more time from then on."""
        if seconds > self.seconds:
            _slowest[self.key] = max(seconds, _slowest.get(self.key, 0.0))


@contextmanager
def trying(kind: str, target: str, shown: str) -> Iterator[Breaker]:
    """Ask a target that all share; UnavailableError at once where it is left alone. What comes of it is noted: only
    one that kept its caller waiting in vain counts as one that does not answer."""
    breaker, begun = breaker_of(target), time.monotonic()
    if breaker.enter():
        raise UnavailableError(
            f"{shown} did not answer several times running and is left alone until {breaker.again_at:%H:%M:%S} UTC; "
            "nothing is lost"
        )
    try:
        yield breaker
    except UnavailableError as exc:
        if isinstance(exc, _Late) or time.monotonic() - begun >= KEPT_WAITING:
            overdue.count(kind)
            breaker.failed()
        else:
            breaker.left()
        raise
    except (OpmonError, GeneratorExit):
        breaker.answered()
        raise
    except BaseException:
        breaker.left()
        raise
    breaker.answered()


class _Late(UnavailableError):
    """The time was over."""


class _Interrupted(BaseException):
    """Ends a computation that nobody waits for any more."""

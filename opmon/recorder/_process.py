"""Handlers for the process around recorders: at its end, at SIGTERM, and at a fork.

Nothing here waits for longer than it says, and what the process would have done it does afterwards.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Protocol

_FORK_SECONDS = 5.0
_IMPORT_SECONDS = 60.0
"""After the first record its thread imports Arrow, which takes seconds on a busy machine."""
_SIGNAL_WAITS = 0.05


class Guarded(Protocol):
    """A recorder, as these handlers see it."""

    exit_seconds: float
    """How long the end of the process waits for what is not written yet."""

    def close(self, timeout: float = ...) -> bool: ...
    def flush(self, timeout: float = ...) -> bool: ...
    def wait_for_arrow(self, timeout: float) -> None: ...
    def hasten(self) -> None: ...
    def halt(self) -> None: ...
    def locks(self) -> tuple[threading.Lock, threading.Lock]:
        """The one that is held while a file is written, and the one that is held while a record is taken."""
        ...

    def begin_anew(self) -> None:
        """Be the recorder of a child process, which has written nothing and owes nothing."""
        ...


_guarded: set[Guarded] = set()
_held: list[threading.Lock] = []
_previous: Callable[[int, FrameType | None], object] | int | None = None


def guard(recorder: Guarded) -> None:
    """Care for a recorder until it is closed; at the end it comes before all that was there before it, such as Arrow,
    which then closes its object stores."""
    _guarded.add(recorder)
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)
    listen()


def release(recorder: Guarded) -> None:
    """Care for it no longer; with the last one SIGTERM is handled as before."""
    _guarded.discard(recorder)
    in_main = threading.current_thread() is threading.main_thread()
    if not _guarded and in_main and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, _previous if _previous is not None else signal.SIG_DFL)


def listen() -> None:
    """Hear SIGTERM before whoever hears it now; only from the main thread, and not where it is ignored."""
    global _previous
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGTERM)
    if before in (_on_sigterm, signal.SIG_IGN, None):
        return
    _previous = before
    signal.signal(signal.SIGTERM, _on_sigterm)


def begin() -> None:
    """Note that this process records: a child of multiprocessing ends without atexit, in a way of its own."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None and sys.modules["multiprocessing"].parent_process() is not None:
        util.Finalize(None, _flush_all, exitpriority=100)


def _at_exit() -> None:
    for recorder in tuple(_guarded):
        recorder.wait_for_arrow(_IMPORT_SECONDS)
        recorder.close(recorder.exit_seconds)


def _flush_all() -> None:
    for recorder in tuple(_guarded):
        recorder.wait_for_arrow(_IMPORT_SECONDS)
        recorder.flush(recorder.exit_seconds)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """Write what waits, then do what the process does at SIGTERM."""
    recorders = tuple(_guarded)
    if not all(_is_free(recorder.locks()[1]) for recorder in recorders):
        _thread.start_new_thread(_come_back, (number,))  # the main thread is taking a record: let it
        return
    for recorder in recorders:
        recorder.wait_for_arrow(recorder.exit_seconds)
    if callable(_previous):
        for recorder in recorders:
            recorder.hasten()
            recorder.flush(recorder.exit_seconds)
        _previous(number, frame)
        return
    _die(number, recorders)


def _die(number: int, recorders: tuple[Guarded, ...]) -> None:
    """End by the signal, as it would have ended without recorders; other threads take no record in between."""
    began = time.monotonic()
    for recorder in recorders:
        recorder.halt()
        recorder.close(max(0.0, began + recorder.exit_seconds - time.monotonic()))
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _is_free(lock: threading.Lock) -> bool:
    """Whether a lock can be had soon: the thread that a handler interrupted would never give it."""
    if not lock.acquire(timeout=_SIGNAL_WAITS):
        return False
    lock.release()
    return True


def _come_back(number: int) -> None:
    time.sleep(_SIGNAL_WAITS)
    os.kill(os.getpid(), number)


def _before_fork() -> None:
    """Let no file be half made, nor a record half taken, when the process is copied."""
    for recorder in tuple(_guarded):
        recorder.wait_for_arrow(_IMPORT_SECONDS)
        writing, taking = recorder.locks()
        for lock, seconds in ((writing, _FORK_SECONDS), (taking, -1)):
            if lock.acquire(timeout=seconds):
                _held.append(lock)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().release()


def _after_fork_in_child() -> None:
    _held.clear()
    for recorder in tuple(_guarded):
        recorder.begin_anew()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)

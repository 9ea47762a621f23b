"""Figures are drawn in one thread, one after the other.

matplotlib keeps the fonts that it has opened for each thread by itself, up to 64 sets of them: a service, each of whose
cycles is a thread, would read the fonts anew for nearly every figure, and hold a hundred files open.

A figure and its parts hold each other, some thousands of objects and a picture. They are let go as soon as it is drawn:
Python would wait with a hundred of them, and a process keeps for long what it once took.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_NAME = "opmon-drawing"


class _Pen:
    """The thread that draws."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """A process that was forked has none of the threads of its parent."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=_NAME)

    def draw(self, function: Callable[[], T]) -> T:
        if threading.current_thread().name.startswith(_NAME):
            return function()
        return self._thread.submit(copy_context().run, _alone, function).result()


def _alone(function: Callable[[], T]) -> T:
    """Draw, and let go what only holds itself and has come meanwhile: what was there before is not looked through."""
    if gc.get_freeze_count():  # somebody else has set objects aside, and wants them to stay there
        return function()
    gc.freeze()
    try:
        return function()
    finally:
        gc.collect()
        gc.unfreeze()


_pen = _Pen()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pen.begin_anew)


def drawn(function: Callable[P, T]) -> Callable[P, T]:
    """A function that makes a figure, and is called in the thread that draws."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        return _pen.draw(lambda: function(*args, **kwargs))

    return inside

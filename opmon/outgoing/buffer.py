"""A few items between the thread that makes them and the one that uses them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

_MOST, _BYTES = 64, 1 << 20
"""So many items, or bytes, wait at most. After one that is as large by itself the next is made when it is asked for."""


class Buffer(Generic[T]):
    """Items in their order, small ones many at a time: threads that pass each on by itself would mostly wait."""

    def __init__(self, size: Callable[[T], int]) -> None:
        self._size = size
        self._items: list[T] = []
        self._bytes = 0
        self._large = self._wanted = self._ended = self._stopped = False
        self._problem: BaseException | None = None
        self._changed = threading.Condition()

    def fill(self, items: Callable[[], Iterable[T]], made: Callable[[float], None]) -> None:
        """Make the items until they end or nobody wants them; ``made`` hears how many seconds each took."""
        try:
            begun = time.monotonic()
            for item in items():
                made(time.monotonic() - begun)
                if not self._offer(item):
                    return
                begun = time.monotonic()
        except BaseException as exc:  # noqa: BLE001 - raised where the items are used
            self._problem = exc
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait at most so long until there are items, or there are no more."""
        with self._changed:
            self._wanted = not self._items
            self._changed.notify_all()
            return self._changed.wait_for(lambda: bool(self._items) or self._ended, seconds)

    def take(self) -> list[T]:
        """The items that wait; the problem where making them met one, and all before it were taken."""
        with self._changed:
            taken, self._items, self._bytes = self._items, [], 0
            self._changed.notify_all()
            if not taken and self._problem is not None:
                raise self._problem
            return taken

    @property
    def is_over(self) -> bool:
        """Whether there are no more."""
        with self._changed:
            return self._ended and not self._items and self._problem is None

    def stop(self) -> None:
        """Nobody wants more items."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _offer(self, item: T) -> bool:
        with self._changed:
            self._items.append(item)
            size = self._size(item)
            self._bytes += size
            self._large, self._wanted = size >= _BYTES, False
            self._changed.notify_all()
            self._changed.wait_for(self._has_room)
            return not self._stopped

    def _has_room(self) -> bool:
        if self._stopped or self._wanted:
            return True
        return not self._large and len(self._items) < _MOST and self._bytes < _BYTES

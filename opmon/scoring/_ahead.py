"""Items made in a thread of their own while others are used: reading and preparing beside inference."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


class _End:
    """A sign that there are no more items."""


def ahead(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The items in order, made in a thread of their own, at most ``depth`` before they are used.

    An error while making them is raised here; who stops early stops the thread.
    """
    waiting: queue.Queue[T | _End] = queue.Queue(maxsize=depth)
    stopped = threading.Event()
    failed: list[BaseException] = []

    def offer(item: T | _End) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            for item in items:
                if not offer(item):
                    return
        except BaseException as exc:  # noqa: BLE001 - raised again where the items are used
            failed.append(exc)
        offer(_End())

    thread = threading.Thread(target=contextvars.copy_context().run, args=(make,), name="opmon-ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := waiting.get(), _End):
            yield item
    finally:
        stopped.set()
        thread.join()
    if failed:
        raise failed[0]

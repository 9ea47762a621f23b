"""Work on the next item while the last one is used: reading and preparing beside inference."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
_END = object()


def ahead(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The items in order, made in a thread of their own, at most ``depth`` before they are used.

    An error while making them is raised here; who stops early stops the thread.
    """
    waiting: queue.Queue[object] = queue.Queue(maxsize=depth)
    stopped = threading.Event()
    failed: list[BaseException] = []

    def offer(item: object) -> bool:
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
        offer(_END)

    thread = threading.Thread(target=make, name="opmon-ahead", daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not _END:
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join()
    if failed:
        raise failed[0]

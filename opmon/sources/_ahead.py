"""What comes next is made while this is used, by threads: each waits for a store, or parses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def mapped(function: Callable[[Item], Made], items: Iterable[Item], at_once: int) -> Iterator[Made]:
    """What the function makes of each item, in their order, so many at once; errors come in their place.

    >>> list(mapped(str.upper, "abc", 2))
    ['A', 'B', 'C']
    """
    with ThreadPoolExecutor(at_once) as pool:
        coming: deque[Future[Made]] = deque()
        try:
            for item in items:
                coming.append(pool.submit(function, item))
                if len(coming) >= at_once:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for future in coming:
                future.cancel()

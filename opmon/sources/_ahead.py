"""One thread finds and checks the next rows while another parses these."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items, none of which is None, each of them made while the one before is used; errors come in their place.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item

from __future__ import annotations

import threading

import pytest

from opmon.scoring._ahead import ahead


def test_the_items_come_in_order() -> None:
    assert list(ahead(range(1000))) == list(range(1000))
    assert list(ahead([])) == []


def test_an_error_is_raised_after_what_was_made_before_it() -> None:
    def failing():
        yield 1
        raise KeyError("here")

    found = []
    with pytest.raises(KeyError, match="here"):
        found.extend(ahead(failing()))
    items = ahead(failing())
    assert next(items) == 1


def test_it_is_never_far_ahead() -> None:
    made: list[int] = []

    def counted():
        for number in range(100):
            made.append(number)
            yield number

    for item in ahead(counted(), depth=2):
        assert len(made) <= item + 5
    assert len(made) == 100


def test_who_stops_early_stops_the_thread() -> None:
    before = threading.active_count()
    items = ahead(iter(range(10**9)))
    next(items)
    items.close()
    assert threading.active_count() == before

"""Monitors work side by side, and none waits for one that hangs."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict

from opmon.service.crew import PLACES, SLOW, Crew

PATIENCE = 300.0
"""Seconds until something hangs; what is waited for comes long before, on a busy machine too."""


class Floor:
    """Where the crew works: each stays until it is let go."""

    def __init__(self, **options: int) -> None:
        self.now = 0.0
        self.waiting: set[str] = set()
        self.crew = Crew(self.work, monotonic=lambda: self.now, waits=lambda name: name in self.waiting, **options)
        self.let_go: dict[str, threading.Event] = defaultdict(threading.Event)
        self.began: dict[str, threading.Event] = defaultdict(threading.Event)
        self.done: list[tuple[str, bool]] = []
        self.inside: Counter[str] = Counter()
        self.lock = threading.Lock()

    def work(self, name: str, open_new: bool) -> None:
        with self.lock:
            self.inside[name] += 1
            assert self.inside[name] == 1, "nobody is at work twice"
        self.began[name].set()
        assert self.let_go[name].wait(PATIENCE)
        with self.lock:
            self.inside[name] -= 1
            self.done.append((name, open_new))


def test_one_that_hangs_delays_nobody() -> None:
    floor = Floor()
    floor.crew.want("hangs", open_new=True)
    assert floor.began["hangs"].wait(PATIENCE)
    for number in range(3 * PLACES):
        floor.let_go[f"quick-{number}"].set()
        floor.crew.want(f"quick-{number}", open_new=True)
    for number in range(3 * PLACES):
        assert floor.began[f"quick-{number}"].wait(PATIENCE)
    assert floor.crew.wait(0.0) >= {"hangs"}
    floor.let_go["hangs"].set()
    assert floor.crew.wait(PATIENCE) == set()


def test_many_that_hang_use_up_no_places() -> None:
    floor = Floor(places=2)
    for number in range(4):
        floor.crew.want(f"hangs-{number}", open_new=True)
    floor.crew.want("quick", open_new=True)
    assert not floor.began["hangs-2"].is_set()
    for _ in range(2):
        floor.now += SLOW + 1
        floor.crew.tend()
    floor.now += SLOW + 1
    floor.let_go["quick"].set()
    floor.crew.tend()
    assert floor.began["quick"].wait(PATIENCE)
    for number in range(4):
        floor.let_go[f"hangs-{number}"].set()
    assert floor.crew.wait(PATIENCE) == set()


def test_one_that_waits_for_somebody_else_gives_up_its_place_at_once() -> None:
    floor = Floor(places=1)
    floor.crew.want("waits", open_new=True)
    floor.let_go["quick"].set()
    floor.crew.want("quick", open_new=True)
    assert not floor.began["quick"].is_set()
    floor.waiting.add("waits")
    floor.crew.tend()
    assert floor.began["quick"].wait(PATIENCE)
    floor.let_go["waits"].set()
    assert floor.crew.wait(PATIENCE) == set()


def test_what_is_wanted_of_one_who_is_busy_is_done_afterwards_once() -> None:
    floor = Floor()
    floor.crew.want("digits", open_new=False)
    assert floor.began["digits"].wait(PATIENCE)
    for open_new in (False, True, False):
        floor.crew.want("digits", open_new=open_new)
    assert floor.crew.busy() == {"digits"}
    floor.let_go["digits"].set()
    while floor.crew.busy():
        floor.crew.wait(PATIENCE)
    assert floor.done == [("digits", False), ("digits", True)], "a scheduled run is not lost to a delivery"


def test_a_closed_crew_begins_nothing() -> None:
    floor = Floor()
    floor.crew.want("digits", open_new=True)
    assert floor.began["digits"].wait(PATIENCE)
    floor.crew.want("digits", open_new=True)
    floor.crew.close()
    floor.crew.want("late", open_new=True)
    floor.let_go["digits"].set()
    assert floor.crew.wait(PATIENCE) == set()
    assert floor.done == [("digits", True)]
    assert not floor.began["late"].is_set()

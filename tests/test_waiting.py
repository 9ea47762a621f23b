"""Who hangs is waited for only so long, not asked again before it ends, and left alone by all who ask the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from opmon.errors import SourceError, UnavailableError
from opmon.logs.place import Place, watched, within
from opmon.outgoing import overdue
from opmon.outgoing.breaker import left_alone
from opmon.waiting import Asking, hanging
from tests.patience import until


def asking(name: str, seconds: float = 30.0, target: str = "") -> Asking:
    return Asking("source", name, f"the source {name}", target or name, seconds)


def test_what_is_asked_in_time_is_given_and_errors_are_as_they_were() -> None:
    assert asking("quick").call(lambda: 7) == 7
    assert list(asking("quick").each(lambda: range(200), lambda item: 1)) == list(range(200))
    with pytest.raises(SourceError, match="damaged"):
        asking("quick").call(damaged)
    with pytest.raises(SourceError, match="damaged"):
        list(asking("quick").each(lambda: (damaged() for _ in range(1)), lambda item: 1))


def damaged() -> int:
    raise SourceError("damaged")


def test_a_call_that_hangs_is_given_up_told_and_not_made_again_until_it_ends() -> None:
    released, before = threading.Event(), overdue.counts()["source"]
    with pytest.raises(UnavailableError, match=r"the source slow did not answer within 0\.05 s"):
        asking("slow", 0.05).call(lambda: released.wait(60))
    assert overdue.counts()["source"] == before + 1
    with pytest.raises(UnavailableError, match="still hangs in an earlier call"):
        asking("slow", 0.05).call(lambda: pytest.fail("asked again"))
    assert "slow" in hanging()
    released.set()
    until(lambda: "slow" not in hanging())
    assert asking("slow", 0.05).call(lambda: 1) == 1


def test_one_that_answered_late_is_given_more_time() -> None:
    def late() -> int:
        time.sleep(0.4)
        return 1

    with pytest.raises(UnavailableError):
        asking("late", 0.05).call(late)
    until(lambda: "late" not in hanging())
    assert asking("late", 0.05).call(late) == 1


def test_items_that_come_too_slowly_are_given_up_but_not_those_before() -> None:
    released = threading.Event()

    def drips() -> Iterator[int]:
        yield 1
        released.wait(60)

    given = asking("drips", 0.2).each(drips, lambda item: 1)
    assert next(given) == 1
    with pytest.raises(UnavailableError, match="did not answer within"):
        next(given)
    released.set()


def test_items_that_nobody_wants_are_not_made() -> None:
    made = []

    def items() -> Iterator[int]:
        for number in range(10_000):
            made.append(number)
            yield number

    given = asking("many").each(items, lambda item: 1 << 18)
    assert next(given) == 0
    given.close()
    count = len(made)
    time.sleep(0.1)
    assert len(made) <= max(count, 10) + 1


def test_a_large_item_is_made_when_it_is_asked_for() -> None:
    made = []

    def items() -> Iterator[int]:
        for number in range(5):
            made.append(number)
            yield number

    given = asking("large").each(items, lambda item: 1 << 26)
    for number in range(5):
        assert next(given) == number
        time.sleep(0.05)
        assert made[-1] == number
    assert list(given) == []


def test_a_target_that_kept_two_waiting_is_left_alone_by_all() -> None:
    released = threading.Event()
    for name in ("one", "two"):
        with pytest.raises(UnavailableError, match="did not answer within"):
            asking(name, 0.05, "s3://shared").call(lambda: released.wait(60))
    assert "s3://shared" in left_alone()
    with pytest.raises(UnavailableError, match="is left alone until"):
        asking("three", 0.05, "s3://shared").call(lambda: 1)
    released.set()


def test_it_is_told_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opmon.waiting.TOLD_AFTER", 0.02)
    heard: list[str] = []

    def hear(place: Place) -> AbstractContextManager[object]:
        heard.append(str(place))
        return nullcontext()

    with watched(hear), within(monitor="m", stage="opening rounds"):
        asking("told", 30).call(lambda: time.sleep(0.2))
    assert heard[-1] == "opening rounds, waiting for the source told"


def test_a_computation_that_never_ends_is_ended() -> None:
    def spins() -> None:
        while True:
            pass

    own = Asking("measure", "spins", "the measure 'spins'", "spins", 0.1, interrupts=True)
    with pytest.raises(UnavailableError, match="did not answer within"):
        own.call(spins)
    until(lambda: "spins" not in hanging())

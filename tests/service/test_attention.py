"""What a monitor is at is known in every thread that works on it, and of what was given up on nothing is heard."""

from __future__ import annotations

import contextvars
import threading

from opmon.logs.place import within
from opmon.service.attention import LATE_SECONDS, Attention
from opmon.waiting import ends_within, told_as_waiting


def stage(attention: Attention) -> str:
    return attention.busy(0)["m"].stage


def test_what_it_waits_for_is_told_and_forgotten_when_it_goes_on() -> None:
    attention = Attention()
    with attention.on("m"), within(stage="opening rounds"):
        with told_as_waiting("the source s3://logs"):
            assert stage(attention) == "opening rounds, waiting for the source s3://logs"
            assert attention.waits("m")
        assert (stage(attention), attention.waits("m")) == ("opening rounds", False)
    assert attention.busy(0) == {}


def test_a_thread_that_works_for_it_is_heard_too() -> None:
    attention, heard = Attention(), list[str]()

    def reads() -> None:
        with told_as_waiting("a disk"):
            heard.append(stage(attention))

    with attention.on("m"), within(stage="scoring"):
        thread = threading.Thread(target=contextvars.copy_context().run, args=(reads,))
        thread.start()
        thread.join()
    assert heard == ["scoring, waiting for a disk"]


def test_work_that_was_given_up_on_is_not_listened_to() -> None:
    attention = Attention()
    with attention.on("m"):
        attention.forget("m")
        other = threading.Thread(target=_on, args=(attention,))
        other.start()
        other.join()
        with within(stage="what was given up on"):
            assert "m" not in attention.busy(0)


def test_what_ends_by_itself_is_not_given_up_sooner() -> None:
    now = [0.0]
    attention = Attention(monotonic=lambda: now[0])
    with attention.on("m"), within(stage="delivering events"):
        with ends_within(3600.0):
            with within(stage="a step of it"):
                now[0] = 3600.0
                assert attention.stalled(lambda name: 1800.0) == []
            now[0] = 3600.0 + LATE_SECONDS + 1
            assert attention.stalled(lambda name: 10.0) == ["m"], "it should long have ended"
        assert attention.stalled(lambda name: 10.0) == []
        now[0] += 11
        assert attention.stalled(lambda name: 10.0) == ["m"], "nothing limits what comes after it"


def test_one_of_two_that_end_by_themselves_is_waited_for_to_its_end() -> None:
    now, stays, ended = [0.0], threading.Event(), threading.Event()
    attention = Attention(monotonic=lambda: now[0])

    def takes_long() -> None:
        with ends_within(3600.0):
            ended.set()
            stays.wait(60)

    with attention.on("m"):
        thread = threading.Thread(target=contextvars.copy_context().run, args=(takes_long,))
        thread.start()
        assert ended.wait(60)
        with ends_within(5.0):
            pass
        now[0] = 2000.0
        assert attention.stalled(lambda name: 1800.0) == []
        stays.set()
        thread.join()


def _on(attention: Attention) -> None:
    with attention.on("m"), within(stage="anew"):
        assert stage(attention) == "anew"

"""What a monitor is at is known in every thread that works on it, and of what was given up on nothing is heard."""

from __future__ import annotations

import contextvars
import threading

from opmon.logs.place import within
from opmon.service.attention import Attention
from opmon.waiting import told_as_waiting


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


def _on(attention: Attention) -> None:
    with attention.on("m"), within(stage="anew"):
        assert stage(attention) == "anew"

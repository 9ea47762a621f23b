"""Answers of many are written together; a fault of one is no fault of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from opmon.errors import DatabaseUnavailable, InputError
from opmon.labels.queue import Answer, Known
from opmon.web.together import Together

ANSWER = (Answer("k", "1"),)


class Queue:
    """Takes a while over each transaction, and cannot stand one annotator."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.calls: list[list[str]] = []
        self.fault = fault

    def answer_together(self, said: Sequence[tuple[str, object]], known: Mapping[str, Known]) -> list[dict[str, str]]:
        names = [name for name, _ in said]
        self.calls.append(names)
        if self.fault is not None and "bad" in names:
            raise self.fault
        return [{"k": name} for name in names]


def told(queue: Queue, names: Sequence[str]) -> list[object]:
    async def all_at_once() -> list[object]:
        together = Together(queue)  # type: ignore[arg-type]
        return list(await asyncio.gather(*(together.answer(name, ANSWER) for name in names), return_exceptions=True))

    return asyncio.run(all_at_once())


def test_each_hears_of_its_own() -> None:
    queue = Queue()
    names = [f"ann {k}" for k in range(250)]
    assert told(queue, names) == [{"k": name} for name in names]
    assert [len(call) for call in queue.calls] == [100, 100, 50]


def test_a_fault_of_one_is_no_fault_of_the_others() -> None:
    fault = InputError("no")
    assert told(Queue(fault), ["ann", "bad", "ben"]) == [{"k": "ann"}, fault, {"k": "ben"}]


def test_a_database_that_is_down_is_not_asked_once_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(DatabaseUnavailable("down"))
    assert all(isinstance(each, DatabaseUnavailable) for each in told(queue, ["ann", "bad", "ben"]))
    assert len(queue.calls) == 1

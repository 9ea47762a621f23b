"""A problem that repeats itself is told once, and then how often it came."""

from __future__ import annotations

import logging

from opmon.logs.formats import Placed
from opmon.logs.place import within
from opmon.logs.repeats import EVENT, Repeats


class Reader(logging.Handler):
    """What somebody who reads the log sees."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.lines: list[str] = []
        self.addFilter(Repeats(600, lambda: self.now))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def reader() -> tuple[Reader, logging.Logger]:
    handler, logger = Reader(), logging.Logger("opmon.test")
    logger.addHandler(handler)
    return handler, logger


def test_a_problem_is_told_once_and_then_with_how_often() -> None:
    handler, logger = reader()
    for left in range(60, 0, -1):
        logger.warning("monitor %s: try again in %d s", "digits", left)
    logger.warning("monitor %s: try again in %d s", "faces", 9)
    handler.now = 601
    logger.warning("monitor %s: try again in %d s", "digits", 60)
    logger.warning("monitor %s: try again in %d s", "digits", 60)
    assert handler.lines == [
        "monitor digits: try again in 60 s",
        "monitor faces: try again in 9 s",
        "monitor digits: try again in 60 s (59 times more in the last 10 min)",
    ]


def test_what_is_no_problem_and_events_are_always_told() -> None:
    handler, logger = reader()
    for _ in range(3):
        logger.info("1 round opened")
        logger.warning("opmon.alarm: too low", extra={EVENT: "id"})
    assert len(handler.lines) == 6


def test_the_memory_is_bounded() -> None:
    handler, logger = reader()
    for number in range(5000):
        logger.warning("problem %s", "a" * number)
    assert len(handler.filters[0]._told) <= 1000  # type: ignore[union-attr]


def test_one_problem_of_many_monitors_is_told_once() -> None:
    handler, logger = reader()
    handler.filters.insert(0, Placed())
    for name in ("digits", "faces", "words"):
        with within(monitor=name):
            logger.warning("monitor %s: MLflow did not answer", name)
    handler.now = 601
    with within(monitor="faces"):
        logger.warning("monitor faces: MLflow did not answer")
    assert handler.lines == [
        "monitor digits: MLflow did not answer",
        "monitor faces: MLflow did not answer (2 times more in the last 10 min)",
    ]


def test_one_problem_that_several_parts_meet_with_is_told_once() -> None:
    handler, logger = reader()
    handler.filters.insert(0, Placed())
    logger.warning("the database postgresql://host/opmon is full")
    with within(monitor="sql", round=3):
        logger.warning("round 3 of sql: the database postgresql://host/opmon is full")
        logger.getChild("monitor").warning("monitor sql: the database postgresql://host/opmon is full")
    assert handler.lines == ["the database postgresql://host/opmon is full"]

"""A line of the log says where the work was, for programs as JSON and for people as text."""

from __future__ import annotations

import json
import logging
from contextlib import AbstractContextManager, nullcontext

from opmon.logs.formats import Json, Placed, Text
from opmon.logs.place import Place, place, watched, within


def record(message: str = "%s is slow", *arguments: object) -> logging.LogRecord:
    made = logging.LogRecord("opmon.test", logging.WARNING, "", 1, message, arguments or ("disk",), None)
    Placed().filter(made)
    return made


def test_json_says_what_and_where() -> None:
    with within(monitor="digits", round=5), within(stage="scoring"):
        told = json.loads(Json().format(record()))
    assert told.pop("time").endswith("+00:00")
    expected = {"level": "warning", "logger": "opmon.test", "message": "disk is slow"}
    assert told == {**expected, "monitor": "digits", "round": 5, "stage": "scoring"}
    assert "monitor" not in json.loads(Json().format(record()))


def test_json_is_one_line_with_its_traceback() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as exc:
        made = record()
        made.exc_info = type(exc), exc, exc.__traceback__
    line = Json().format(made)
    assert "\n" not in line
    assert json.loads(line)["traceback"].endswith("ValueError: two\nlines\n")


def test_text_names_the_monitor_and_round_once() -> None:
    with within(monitor="digits", round=5):
        assert Text().format(record()).endswith("WARNING opmon.test: digits round 5: disk is slow")
        assert Text().format(record("monitor digits: %s")).endswith(": round 5: monitor digits: disk")
    assert Text().format(record()).endswith("opmon.test: disk is slow")


def test_whoever_watches_hears_of_each_place() -> None:
    heard: list[Place] = []

    def watcher(where: Place) -> AbstractContextManager[None]:
        heard.append(where)
        return nullcontext()

    with watched(watcher), within(monitor="digits"), within(stage="drawing"):
        assert place() == Place("digits", None, "drawing")
    assert place() == Place()
    assert heard == [Place("digits"), Place("digits", None, "drawing")]

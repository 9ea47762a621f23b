"""Outputs to judge and several classes at once, in a real Label Studio."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from opmon_label_studio.provider import LabelStudio
from real_studio import People, Studio

from opmon.replies import Replies
from opmon.types import Guide, Task

DUE = datetime(2026, 3, 8, tzinfo=UTC)


def said(studio: Studio, number: int, part: dict[str, Any]) -> None:
    """A user's answer to the first task."""
    task = studio.tasks(number)[0]
    body = {"result": [part], "was_cancelled": False, "completed_by": studio.user("ann@example.com")}
    studio.call("POST", f"/api/tasks/{task['id']}/annotations/", body)


@pytest.mark.parametrize(
    ("scale", "kind", "value", "kept"),
    [
        ("pass_fail", "choices", {"choices": ["fail"]}, "fail"),
        ("score", "number", {"number": 0.25}, "0.25"),
        ("stars", "rating", {"rating": 4}, "4 of 5"),
    ],
)
def test_an_output_is_judged(
    studio: Studio, provider: LabelStudio, scale: Any, kind: str, value: dict[str, Any], kept: str
) -> None:
    name = f"judged {scale}"
    bound = provider.bind(name, Guide("judged", scale=scale, output="answer", text="prompt"))
    payload = {"prompt": "Where is it?", "answer": "On its way.\n\nBest regards", "channel": "chat"}
    bound.push([Task(1, name, 1, "q1", payload, "t1-0123456789ab", (), DUE)])
    number = People(studio, f"opmon: {name}").number
    (task,) = studio.tasks(number)
    assert task["data"]["output"] == payload["answer"]
    assert task["data"]["row"] == {"channel": "chat"}
    said(studio, number, {"from_name": "answer", "to_name": "output", "type": kind, "value": value})
    (heard,) = bound.pull("").said
    assert Replies("judged", scale=scale).read(heard.truth) == kept


@pytest.mark.parametrize(("chosen", "kept"), [(["price", "app"], '["app", "price"]'), (["none of them"], "[]")])
def test_several_classes_are_chosen(studio: Studio, provider: LabelStudio, chosen: list[str], kept: str) -> None:
    name, classes = f"topics {len(chosen)}", {"app": "", "price": "too high", "staff": ""}
    bound = provider.bind(name, Guide("multilabel", classes=classes, text="review"))
    bound.push([Task(1, name, 1, "r1", {"review": "Dear. " * 20}, "t1-0123456789ab", tuple(classes), DUE)])
    number = People(studio, f"opmon: {name}").number
    part = {"from_name": "answers", "to_name": "text", "type": "choices", "value": {"choices": chosen}}
    said(studio, number, part)
    (heard,) = bound.pull("").said
    assert Replies("multilabel", tuple(classes)).read(heard.truth) == kept

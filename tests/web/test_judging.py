"""Outputs and several classes through the page's API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.web.world import World, encoded, monitor, picture

Clients = Callable[..., httpx.Client]
API = "/api/v1"


@pytest.fixture
def world(sqlite: str, tmp_path: Path) -> World:
    def judged(scale: str) -> dict[str, Any]:
        return monitor(problem="judged", columns={"prediction": "answer"}, labels={"scale": scale})

    monitors = {
        "bot": judged("pass_fail"),
        "score": judged("score"),
        "stars": judged("stars"),
        "topics": monitor(problem="multilabel", classes=["a", "b"]),
        "open": monitor(problem="multilabel"),
    }
    return World.of(sqlite, tmp_path, monitors)


def answered(client: httpx.Client, name: str, *truths: str) -> dict[str, Any]:
    tasks = client.post(f"{API}/monitors/{name}/take", json={"count": len(truths)}).json()["tasks"]
    answers = [{"key": task["key"], "truth": truth} for task, truth in zip(tasks, truths, strict=True)]
    return dict(client.post(f"{API}/answers", json={"answers": answers}).json())


def test_the_output_is_told_apart_from_the_input(world: World, client_of: Clients) -> None:
    world.ask("bot", [{"prompt": "Why?", "answer": "So."}, {"prompt": "Draw.", "answer": encoded(picture(3))}])
    ann = client_of(name="ann")
    guide = ann.get(f"{API}/monitors/bot").json()
    assert (guide["form"], guide["problem"], guide["classes"]) == ("pass_fail", "judged", [])
    text, drawn = ann.post(f"{API}/monitors/bot/take", json={"count": 2}).json()["tasks"]
    assert [(field["name"], field["kind"], field["is_output"]) for field in text["fields"]] == [
        ("prompt", "value", False),
        ("answer", "text", True),
    ]
    assert drawn["fields"][-1]["kind"] == "picture"
    assert ann.get(drawn["fields"][-1]["url"]).headers["content-type"] == "image/png"
    assert text["prediction"] is None


@pytest.mark.parametrize(
    ("name", "good", "kept", "bad", "words"),
    [
        ("bot", ["YES", "0"], ["pass", "fail"], "0.5", "pass or fail"),
        ("score", ["0.50", "pass"], ["0.5", "1"], "2", "a score from 0 to 1"),
        ("stars", ["5", "2 stars"], ["5 of 5", "2 of 5"], "0", "one to five stars"),
        ("topics", ["b; a", "none"], ['["a", "b"]', "[]"], "a;c", "some of the classes a, b"),
        ("open", ['["x", "y"]', "z"], ['["x", "y"]', '["z"]'], '["x", 1.5, {}]', "classes"),
    ],
)
def test_answers_are_read_kept_and_refused(
    world: World, client_of: Clients, name: str, good: list[str], kept: list[str], bad: str, words: str
) -> None:
    world.ask(name, [{"prompt": str(k), "answer": "So."} for k in range(3)])
    ann = client_of(name="ann")
    assert answered(ann, name, *good) == {"recorded": 2, "refused": {}}
    assert [truth for _, _, truth, _ in world.said()] == kept
    told = answered(ann, name, bad)
    assert told["recorded"] == 0
    (why,) = told["refused"].values()
    assert words in why
    said = ann.get(f"{API}/monitors/{name}/said").json()["said"]
    assert [each["truth"] for each in reversed(said)] == kept
    again = [{"key": each["task"]["key"], "truth": each["truth"]} for each in said]
    assert ann.post(f"{API}/answers", json={"answers": again}).json()["recorded"] == 2
    assert [truth for _, _, truth, _ in world.said()] == kept, "what was kept says the same again"

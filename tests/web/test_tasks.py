"""The API as annotators' programs use it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.web.world import World, encoded, monitor, picture

Clients = Callable[..., httpx.Client]
API = "/api/v1"


def taken(client: httpx.Client, count: int = 1, name: str = "digits") -> list[dict[str, object]]:
    answer = client.post(f"{API}/monitors/{name}/take", json={"count": count})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["tasks"])


def test_tasks_are_taken_answered_and_corrected(world: World, client_of: Clients) -> None:
    ann = client_of(name="ann")
    first, second = taken(ann, 2)
    assert [field["kind"] for field in first["fields"]] == ["picture", "value"]  # type: ignore[attr-defined]
    at = datetime.now(UTC).isoformat()
    said = {"answers": [{"key": first["key"], "truth": "3", "seconds": 1.5, "at": at}]}
    assert ann.post(f"{API}/answers", json=said).json() == {"recorded": 1, "refused": {}}
    assert ann.post(f"{API}/answers", json=said).json() == {"recorded": 1, "refused": {}}
    again = {"answers": [{"key": first["key"], "truth": "4"}, {"key": second["key"], "skip": True, "why": "blurred"}]}
    assert ann.post(f"{API}/answers", json=again).json()["recorded"] == 2
    a, b = first["input_id"], second["input_id"]
    assert world.said() == [(a, "ann", "3", None), (a, "ann", "4", None), (b, "ann", None, "blurred")]
    lately = ann.get(f"{API}/monitors/digits/said").json()["said"]
    assert [(each["task"]["key"], each["truth"]) for each in lately] == [(second["key"], None), (first["key"], "4")]


def test_what_cannot_be_taken_is_refused_by_key_and_the_rest_is_recorded(world: World, client_of: Clients) -> None:
    ann = client_of(name="ann")
    first, second = taken(ann, 2)
    answers = [
        {"key": first["key"], "truth": "a dog"},
        {"key": "t1-000000000000", "truth": "1"},
        {"key": second["key"], "truth": "1"},
    ]
    told = ann.post(f"{API}/answers", json={"answers": answers}).json()
    assert told["recorded"] == 1
    assert "classes 0, 1" in told["refused"][first["key"]]
    assert "another one" in told["refused"]["t1-000000000000"]
    assert [truth for _, _, truth, _ in world.said()] == ["1"]


def test_every_answer_tells_the_servers_time(client_of: Clients) -> None:
    """Pages put their own clock right by it."""
    for path, status in ((f"{API}/me", 200), (f"{API}/nothing", 404), ("/label", 200)):
        before = datetime.now(UTC)
        answer = client_of(name="ann").get(path)
        assert answer.status_code == status
        told = datetime.fromisoformat(answer.headers["opmon-now"])
        assert before - timedelta(milliseconds=1) <= told <= datetime.now(UTC)


def test_two_annotators_get_different_tasks_and_give_them_back(client_of: Clients) -> None:
    ann, ben = client_of(name="ann"), client_of(name="ben")
    hers, his = taken(ann, 6), taken(ben, 50)
    assert len(his) == 6
    assert not {each["key"] for each in hers} & {each["key"] for each in his}
    assert taken(ann, 6) == hers, "the same again after a reload"
    keys = [each["key"] for each in hers[:2]]
    assert ann.post(f"{API}/give-back", json={"keys": keys}).json() == {"given_back": 2}
    assert {each["key"] for each in taken(ben, 50)} == {each["key"] for each in his} | set(keys)


def test_who_knows_the_classes_is_told_that_they_are_others_now(sqlite: str, tmp_path: Path) -> None:
    """A page stays open when the next version, which knows one class more, has its first round."""
    world = World.of(sqlite, tmp_path, {"pets": monitor()})
    world.ask("pets", [{"x": 1}], classes=["cat", "dog"])
    with (
        world.served() as server,
        httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as ann,
    ):
        guide = ann.get(f"{API}/monitors/pets").json()
        told = ann.post(f"{API}/monitors/pets/take", json={"count": 2}).json()
        assert (told["classes_mark"], told["tasks"][0]["classes"]) == (guide["classes_mark"], None)
        ann.post(f"{API}/answers", json={"answers": [{"key": told["tasks"][0]["key"], "truth": "dog"}]})
        world.ask("pets", [{"x": 2}], classes=["cat", "cow", "dog"])
        told = ann.post(f"{API}/monitors/pets/take", json={"count": 2}).json()
        said = ann.get(f"{API}/monitors/pets/said").json()
        now = ann.get(f"{API}/monitors/pets").json()
    assert told["tasks"][0]["classes"] is None
    assert said["said"][0]["task"]["classes"] == ["cat", "dog"]
    assert told["classes_mark"] == said["classes_mark"] == now["classes_mark"] != guide["classes_mark"]
    assert [each["name"] for each in now["classes"]] == ["cat", "cow", "dog"]


def test_pictures_come_as_a_browser_shows_them(sqlite: str, tmp_path: object, client_of: Clients, world: World) -> None:
    ann = client_of(name="ann")
    (task,) = taken(ann)
    url = task["fields"][0]["url"]  # type: ignore[index]
    answer = ann.get(url)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert answer.headers["cache-control"].startswith("private")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert ann.get(url.replace("pictures/picture", "pictures/age")).status_code == 422
    assert ann.get(url.replace("pictures/picture", "pictures/nothing")).status_code == 404
    assert ann.get(f"{API}/tasks/t1-000000000000/pictures/picture").status_code == 404


ROWS = np.arange(64.0).reshape(8, 8)


@pytest.mark.parametrize(
    ("inputs", "cell", "kind"),
    [
        ({"tensor": "x"}, ROWS.ravel().tolist(), "picture"),
        ({"tensor": "x"}, ROWS.tolist(), "picture"),
        ({"tensor": "x"}, np.zeros((3, 16, 16)).ravel().tolist(), "picture"),
        ({"tensor": "x"}, list(range(50)), "value"),
        ({"image": {"column": "x"}}, encoded(picture(3), "BMP"), "picture"),
        ({"image": {"column": "x"}}, encoded(picture(3), "JPEG"), "picture"),
        ({"image": {"column": "x"}}, None, "value"),
        ({}, "a longer text " * 10, "text"),
        ({}, "a word", "value"),
        ({}, 2**53 - 1, "value"),
    ],
)
def test_parts_of_inputs_are_shown_as_what_they_are(
    sqlite: str, tmp_path: object, inputs: dict[str, object], cell: object, kind: str
) -> None:
    world = World.of(sqlite, tmp_path, {"m": monitor(inputs=inputs, classes=["a", "b"])})  # type: ignore[arg-type]
    world.ask("m", [{"x": cell, "more": 1}])  # type: ignore[dict-item]
    with (
        world.served() as server,
        httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as ann,
    ):
        (task,) = taken(ann, name="m")
        field = next(each for each in task["fields"] if each["name"] == "x")  # type: ignore[attr-defined]
        assert field["kind"] == kind
        if kind == "picture":
            answer = ann.get(field["url"])
            assert answer.headers["content-type"] in ("image/png", "image/jpeg"), answer.text
        else:
            assert field["value"] == cell


def test_ids_that_browsers_would_change_are_told_as_text(sqlite: str, tmp_path: Path) -> None:
    """Of 1152921504606846977 they show 1152921504606847000, which may be another customer."""
    world = World.of(sqlite, tmp_path, {"m": monitor(classes=["a", "b"])})
    world.ask("m", [{"user": 2**60 + 1, "least": -(2**53), "baskets": [3, {"order": 2**53}]}])
    with (
        world.served() as server,
        httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}, verify=False) as ann,
    ):
        (task,) = taken(ann, name="m")
    shown = {field["name"]: field["value"] for field in task["fields"]}  # type: ignore[attr-defined]
    assert shown == {
        "user": "1152921504606846977",
        "least": "-9007199254740992",
        "baskets": [3, {"order": "9007199254740992"}],
    }

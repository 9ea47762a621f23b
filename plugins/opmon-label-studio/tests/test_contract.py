"""The provider under opmon's own suite, and what a project looks like that it makes."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import numpy as np
import pytest
from opmon_label_studio.answers import Cursor, heard
from opmon_label_studio.client import Client
from opmon_label_studio.project import find
from opmon_label_studio.provider import LabelStudio
from real_studio import TOKEN, People, Studio

from opmon import plugins
from opmon.errors import InputError, NotFoundError
from opmon.labels.studio.pictures import content_of
from opmon.testing import check_label_provider
from opmon.types import Guide, Json, Task

PETS = Guide(classes={"cat": "of any age", "dog": ""}, guidelines="Look *twice*.")


def tasks(number: int, payload: dict[str, Json] | None = None, monitor: str = "pets") -> list[Task]:
    due = datetime(2026, 3, 8, tzinfo=UTC)
    shown = {"age": 3} if payload is None else payload
    return [
        Task(k, monitor, 1, f"i{k}", shown, f"t{k}-0123456789ab", ("cat", "dog"), due) for k in range(1, number + 1)
    ]


def test_it_keeps_the_contract(studio: Studio, provider: LabelStudio) -> None:
    check_label_provider(provider, People(studio, "opmon: suite"))


def test_opmon_finds_it() -> None:
    assert plugins.load("label_provider", "label_studio") is LabelStudio


def test_a_thousand_tasks_imported_twice_are_a_thousand(studio: Studio, provider: LabelStudio) -> None:
    bound = provider.bind("thousand", PETS)
    asked = tasks(1000, monitor="thousand")
    for _ in range(2):
        for start in range(0, 1000, bound.batch):
            bound.push(asked[start : start + bound.batch])
    found = [task["data"]["opmon"] for task in studio.tasks(People(studio, "opmon: thousand").number)]
    assert found == [task.key for task in asked]
    assert len(bound.reconcile({task.key for task in asked} | {"t5000-0123456789ab"})) == 1000


def test_labels_come_back_within_one_poll_and_deleted_tasks_are_known(studio: Studio, provider: LabelStudio) -> None:
    bound, asked = provider.bind("poll", PETS), tasks(3, monitor="poll")
    bound.push(asked)
    number = People(studio, "opmon: poll").number
    cursor = bound.pull("").cursor
    studio.answer(number, asked[0].key, "cat", "ann@example.com")
    studio.answer(number, asked[0].key, "dog", "bob@example.com")
    heard = bound.pull(cursor)
    assert [(said.task_key, said.annotator, said.truth, said.seconds) for said in heard.said] == [
        (asked[0].key, "ann@example.com", "cat", 4.5),
        (asked[0].key, "bob@example.com", "dog", 4.5),
    ]
    gone = next(task["id"] for task in studio.tasks(number) if task["data"]["opmon"] == asked[1].key)
    studio.call("DELETE", f"/api/tasks/{gone}/")
    assert set(bound.reconcile({task.key for task in asked})) == {asked[0].key, asked[2].key}


def test_what_an_import_doubled_is_taken_away_and_answers_are_kept(studio: Studio, provider: LabelStudio) -> None:
    bound, asked = provider.bind("doubled", PETS), tasks(3, monitor="doubled")
    bound.push(asked)
    number = People(studio, "opmon: doubled").number
    again = [{"data": task["data"], "meta": task["meta"]} for task in studio.tasks(number)]
    studio.call("POST", f"/api/projects/{number}/import", again)  # the answer to the first import was lost
    studio.answer(number, asked[2].key, "cat", "ann@example.com")
    assert len(studio.tasks(number)) == 6
    bound.push(asked)
    left = studio.tasks(number)
    assert sorted(task["data"]["opmon"] for task in left) == [task.key for task in asked]
    assert [said.truth for said in bound.pull("").said] == ["cat"]


def test_a_deleted_project_is_told_and_the_tasks_go_to_another(studio: Studio, provider: LabelStudio) -> None:
    bound, asked = provider.bind("deleted", PETS), tasks(3, monitor="deleted")
    bound.push(asked)
    studio.answer(People(studio, "opmon: deleted").number, asked[0].key, "cat", "ann@example.com")
    cursor = bound.pull("").cursor
    number = People(studio, "opmon: deleted").number
    studio.call("DELETE", f"/api/projects/{number}/")
    with pytest.raises(NotFoundError, match=f"has no project {number} 'opmon: deleted' any more.*Name another project"):
        bound.pull(cursor)
    by_number = replace(provider, project=number).bind("deleted", PETS)
    for call in (lambda: by_number.pull(""), lambda: by_number.push(asked), lambda: by_number.reconcile({"a"})):
        with pytest.raises(NotFoundError, match=f"has no project {number} any more"):
            call()
    elsewhere = replace(provider, project="pets elsewhere").bind("deleted", PETS)
    elsewhere.push(asked[1:])
    assert People(studio, "pets elsewhere").tasks() == [task.key for task in asked[1:]]


def test_the_project_says_what_is_asked_and_follows_changes(studio: Studio, provider: LabelStudio) -> None:
    provider.bind("told", PETS).push(tasks(2, monitor="told"))
    project = studio.project("opmon: told")
    assert project is not None
    assert "<em>twice</em>" in project["expert_instruction"]
    assert "of any age" in project["expert_instruction"]
    assert (project["show_instruction"], project["show_skip_button"], project["maximum_annotations"]) == (True, True, 1)
    assert project["sampling"] == "Sequential sampling"
    task = studio.tasks(project["id"])[0]
    assert task["data"]["row"] == {"age": 3}
    assert task["meta"]["opmon"]["due_at"] == "2026-03-08T00:00:00+00:00"
    assert task["predictions"] == []
    more = Guide(classes={"cat": "old ones too", "dog": "", "wolf": ""}, guidelines="Look.", needs=2)
    third = tasks(3, {"text": "A long text, " * 9, "age": 1}, "told")[2]
    provider.bind("told", more).push([replace(third, classes=tuple(more.classes), needs=2)])
    changed = studio.call("GET", f"/api/projects/{project['id']}/")
    choices = ElementTree.fromstring(changed["label_config"]).iter("Choice")
    assert [each.get("alias") or each.get("value") for each in choices] == ["cat", "dog", "wolf"]
    assert (changed["maximum_annotations"], "old ones too" in changed["expert_instruction"]) == (2, True)
    assert {each["overlap"] for each in studio.tasks(project["id"])} == {2}


def test_a_task_is_shown_to_as_many_as_it_needs(studio: Studio, provider: LabelStudio) -> None:
    bound, asked = provider.bind("overlap", PETS), tasks(3, monitor="overlap")
    bound.push([asked[0], replace(asked[1], needs=2), asked[2]])
    number = People(studio, "opmon: overlap").number
    for task in asked[:2]:
        studio.answer(number, task.key, "cat", "ann@example.com")
    bound.reconcile({asked[1].key, asked[2].key})
    state = [(each["overlap"], each["is_labeled"]) for each in studio.tasks(number)]
    assert state == [(1, True), (2, False), (1, False)]
    bound.reconcile({asked[0].key})  # it is a failure of the model, and a second opinion is wanted
    state = [(each["overlap"], each["is_labeled"]) for each in studio.tasks(number)]
    assert state == [(2, False), (2, False), (1, False)]


def test_somebodys_own_configuration_stays_and_its_answers_count(studio: Studio, provider: LabelStudio) -> None:
    own = (
        '<View><Table name="all" value="$row"/><Choices name="kind" toName="all"><Choice value="cat"/></Choices></View>'
    )
    made = studio.call("POST", "/api/projects/", {"title": "somebody's own", "label_config": own})
    studio.call("POST", f"/api/projects/{made['id']}/import", [{"data": {"row": {"age": 1}}}])  # none of opmon's
    bound = replace(provider, project=made["id"]).bind("own", PETS)
    bound.push(tasks(1, monitor="own"))
    assert studio.call("GET", f"/api/projects/{made['id']}/")["label_config"] == own
    assert f'the project {made["id"]} "somebody\'s own" has 2 tasks' in bound.check()
    part = {"from_name": "kind", "to_name": "all", "type": "choices", "value": {"choices": ["cat"]}}
    for task in studio.tasks(made["id"]):
        studio.call("POST", f"/api/tasks/{task['id']}/annotations/", {"result": [part]})
    assert [(said.task_key, said.truth) for said in bound.pull("").said] == [("t1-0123456789ab", "cat")]


def test_pictures_go_inside_the_task_or_into_a_file(studio: Studio, provider: LabelStudio) -> None:
    small = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFElEQVR4nGP8//8/AzbAhFV0sEoAAFf3Aw2Q2E5NAAAAAElFTkSuQmCC"
    )
    contents = [small, *(small + np.random.default_rng(k).bytes(20_000) for k in range(60))]
    payloads: list[dict[str, Json]] = [
        {"photo": {"base64": base64.b64encode(content).decode()}, "age": 3} for content in contents
    ]
    asked = [replace(task, payload=payload) for task, payload in zip(tasks(61), payloads, strict=True)]
    provider.bind("pictures", PETS).push(asked)
    inside, *files = (task["data"]["picture"] for task in studio.tasks(People(studio, "opmon: pictures").number))
    assert content_of(inside) == (small, "png")
    assert all(file.startswith("/data/upload/") for file in files)
    assert [fetched(studio.url + files[place]) for place in (0, 55)] == [contents[1], contents[56]]


def fetched(address: str) -> bytes:
    with urlopen(Request(address, headers={"Authorization": f"Token {TOKEN}"}), timeout=30) as response:
        return bytes(response.read())


def test_numbers_come_back_as_they_were_said(studio: Studio, provider: LabelStudio) -> None:
    asked = [replace(task, classes=()) for task in tasks(1, {"note": "words " * 30}, "numbers")]
    bound = provider.bind("numbers", Guide("regression", unit="kg"))
    bound.push(asked)
    studio.answer(People(studio, "opmon: numbers").number, asked[0].key, -2.5, "ann@example.com")
    assert [said.truth for said in bound.pull("").said] == ["-2.5"]


def test_a_personal_access_token_is_as_good(studio: Studio, provider: LabelStudio) -> None:
    personal = studio.call("POST", "/api/token/", {})["token"]
    assert personal.count(".") == 2
    bound = replace(provider, token=personal).bind("personal", PETS)
    assert bound.check().endswith("the project 'opmon: personal' is made with the first tasks")
    bound.push(tasks(2, monitor="personal"))
    assert len(People(studio, "opmon: personal").tasks()) == 2
    assert personal not in repr(bound)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"url": "127.0.0.1:8080"}, "url must be Label Studio's address"),
        ({"url": "http://ann:secret@studio"}, "url must not hold a user or password"),
        ({"token": ""}, "token must be"),
        ({"token": "two words"}, "token must be"),
        ({"project": "x"}, "project must be"),
        ({"timeout": 0}, "timeout must be"),
    ],
)
def test_what_cannot_be_right_is_told_at_once(given: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem) as raised:
        LabelStudio(**{"url": "http://studio", "token": TOKEN, **given})  # type: ignore[arg-type]
    assert "secret" not in str(raised.value)


def test_many_answers_are_polled_in_portions_and_none_is_left_out(studio: Studio, provider: LabelStudio) -> None:
    bound, asked = provider.bind("many", PETS), tasks(3, monitor="many")
    bound.push(asked)
    number = People(studio, "opmon: many").number
    empty: dict[str, Json] = {"picture": "", "text": "", "lines": "", "row": {}}
    part = {"from_name": "answer", "to_name": "row", "type": "choices", "value": {"choices": ["cat"]}}
    answered = [
        {"data": empty | {"opmon": key}, "meta": {"opmon": {"key": key}}, "annotations": [{"result": [part]}]}
        for key in (f"t{k}-abc" for k in range(2000, 3200))
    ]
    studio.call("POST", f"/api/projects/{number}/import", answered)
    assert len(bound.pull("").said) == 1200
    client = Client(studio.url, TOKEN, 30)
    place = find(client, number)
    assert place is not None
    first = heard(client, place, Cursor(number), most=500)
    studio.answer(number, asked[0].key, "dog", "ann@example.com")  # while the sweep is elsewhere
    second = heard(client, place, Cursor.of(first.cursor), most=500)
    third = heard(client, place, Cursor.of(second.cursor), most=500)
    assert [len(each.said) for each in (first, second, third)] == [500, 500, 200]
    assert len({said.task_key for each in (first, second, third) for said in each.said}) == 1200
    assert Cursor.of(third.cursor).since == Cursor.of(first.cursor).latest  # what was said meanwhile is behind it
    again = heard(client, place, Cursor.of(third.cursor))
    assert (asked[0].key, "dog") in {(said.task_key, said.truth) for said in again.said}

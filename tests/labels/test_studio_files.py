"""Label Studio's task form, both directions; what travels with the tasks in every form."""

from __future__ import annotations

import base64
import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from opmon.errors import InputError
from opmon.labels.files import read_labels, write_tasks
from opmon.labels.studio.annotations import annotations_of
from opmon.labels.studio.configuration import MARK, is_ours, labelling_configuration, shown_in
from opmon.labels.studio.pictures import address_of, content_of, is_picture
from opmon.labels.studio.tasks import layout_of, task_form
from opmon.replies import Replies
from opmon.types import Guide, Task

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFElEQVR4nGP8//8/AzbAhFV0sEoAAFf3Aw2Q2E5NAAAAAElFTkSuQmCC"
)
PNG_JSON = {"base64": base64.b64encode(PNG).decode()}
DUE = datetime(2026, 3, 8, tzinfo=UTC)
LATER = "2026-03-02T11:00:00+00:00"
GUIDE = Guide(classes={"cat": "of any age & size", "dog": ""}, guidelines="Look *twice*.")
TASKS = [
    Task(1, "pets", 4, "a-1", {"photo": PNG_JSON, "age": 3}, "t1-abc", ("cat", "dog"), DUE),
    Task(2, "pets", 4, "a-2", {"photo": PNG, "age": None}, "t2-def", ("cat", "dog"), DUE),
]


def exported(folder: Path, answers: dict[str, list[dict]]) -> Path:
    """What Label Studio exports of the tasks once annotators have answered."""
    path = folder / "tasks.json"
    write_tasks(TASKS, path, guides={"pets": GUIDE})
    tasks = json.loads(path.read_text())
    for number, task in enumerate(tasks, 7):
        task |= {"id": number, "annotations": answers.get(task["data"]["opmon"], [])}
    path.write_text(json.dumps(tasks))
    return path


def annotation(choice: object, by: object = 3, at: str = "2026-03-02T10:00:00.5Z", **more: object) -> dict:
    result = [{"from_name": "answer", "to_name": "picture", "type": "choices", "value": {"choices": [choice]}}]
    return {"result": result, "completed_by": by, "was_cancelled": False, "updated_at": at, "lead_time": 2.5, **more}


def test_an_id_that_a_browser_would_change_is_text_in_the_row() -> None:
    payload = {"user": 2**60 + 1, "age": 3}
    shown = layout_of([payload], Guide())
    data = task_form(Task(1, "pets", 4, "a-1", payload, "t1-abc"), payload, shown)["data"]
    assert data["row"] == {"user": "1152921504606846977", "age": 3}  # type: ignore[index,call-overload]


def test_a_task_has_its_picture_its_row_and_its_key(tmp_path: Path) -> None:
    first, second = json.loads(exported(tmp_path, {}).read_text())
    assert content_of(first["data"]["picture"]) == (PNG, "png")
    assert first["data"]["picture"] == second["data"]["picture"]
    assert (first["data"]["lines"], second["data"]["lines"]) == ("age: 3", "age: ")
    assert first["meta"]["opmon"] == {
        "key": "t1-abc", "monitor": "pets", "round": 4, "input_id": "a-1", "due_at": DUE.isoformat(),
        "classes": {"cat": "of any age & size", "dog": ""}, "guidelines": "Look *twice*.",
    }  # fmt: skip
    assert "guidelines" not in second["meta"]["opmon"]
    assert set(first["data"]) == set(second["data"])


def test_the_labelling_configuration_lies_beside_the_tasks(tmp_path: Path) -> None:
    text = exported(tmp_path, {}).with_suffix(".xml").read_text()
    tree = ElementTree.fromstring(text)
    assert [(each.get("value"), each.get("alias")) for each in tree.iter("Choice")] == [
        ("cat: of any age & size", "cat"),
        ("dog", None),
    ]
    (control,) = tree.iter("Choices")
    assert control.get("toName") == next(tree.iter("Image")).get("name")
    assert shown_in(text) == {"picture", "lines"}
    assert is_ours(text)
    assert not is_ours(text.replace(MARK, ""))


def test_answers_come_back_with_their_annotators(tmp_path: Path) -> None:
    path = exported(
        tmp_path,
        {
            "t1-abc": [
                annotation("dog", at=LATER),
                annotation("cat"),
                annotation("cat", {"id": 4, "email": "bob@x.org"}),
            ],
            "t2-def": [annotation("cat", was_cancelled=True)],
        },
    )
    found = read_labels(path)
    said = {(label.task_key, label.annotator): label.truth for label in found.labels}
    assert said == {("t1-abc", "user-3"): "dog", ("t1-abc", "bob@x.org"): "cat", ("t2-def", "user-3"): None}
    assert found.labels[0].at == datetime.fromisoformat(LATER)
    assert found.labels[0].monitor == "pets"
    assert read_labels(exported(tmp_path, {})).unanswered == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "must hold a list of tasks"),
        ("[", "is no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"data": {"text": "a"}}]', "names no task of opmon's"),
        (json.dumps([{"data": {"opmon": "t1-a"}, "annotations": [{"was_cancelled": True}]}]), "who answered"),
        (json.dumps([{"data": {"opmon": "t1-a"}, "annotations": [annotation("a", at="noon")]}]), "no time of its"),
    ],
)
def test_a_file_that_is_no_export_is_told(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_labels(io.StringIO(text), "label-studio")


def test_a_class_that_is_a_digit_is_answered_by_its_own_key() -> None:
    text = labelling_configuration({"row"}, Guide(), dict.fromkeys("0123456789", ""))
    assert [(each.get("value"), each.get("hotkey")) for each in ElementTree.fromstring(text).iter("Choice")][:2] == [
        ("0", "0"),
        ("1", "1"),
    ]
    assert "hotkey" not in labelling_configuration({"row"}, Guide(), {"0": "", "ten": ""})


def test_many_classes_are_searched() -> None:
    names = [f"class {number}" for number in range(21)]
    tree = ElementTree.fromstring(labelling_configuration({"row"}, Guide(), dict.fromkeys(names, "of its own")))
    assert [each.get("value") for each in next(tree.iter("Taxonomy")).iter("Choice")] == names
    chosen = [{"value": {"taxonomy": [["class 7"]]}, "type": "taxonomy", "from_name": "answer"}]
    form = [{"data": {"opmon": "t1-a"}, "annotations": [annotation("", result=chosen)]}]
    assert read_labels(io.StringIO(json.dumps(form)), "label-studio").labels[0].truth == "class 7"
    chosen[0]["value"] = {"taxonomy": [["class 7"], ["class 8"]]}
    with pytest.raises(InputError, match="holds 2 answers, and one is asked for: class 7, class 8"):
        read_labels(io.StringIO(json.dumps(form)), "label-studio")


def test_numbers_are_answered_with_their_unit() -> None:
    text = labelling_configuration({"row"}, Guide("regression", unit="m²"), {})
    tree = ElementTree.fromstring(text)
    assert [each.get("value") for each in tree.iter("Header")] == ["The number in m²"]
    assert len(list(tree.iter("Number"))) == 1
    number = [{"value": {"number": -3.5}, "type": "number", "from_name": "answer"}]
    form = [{"data": {"opmon": "t1-a"}, "annotations": [annotation("", result=number)]}]
    assert read_labels(io.StringIO(json.dumps(form)), "label-studio").labels[0].truth == "-3.5"


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_is_asked_travels_with_the_tasks(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"tasks.{form}"
    write_tasks(TASKS, path, guides={"pets": GUIDE})
    text = path.read_text(encoding="utf-8-sig")
    first, second = csv.DictReader(io.StringIO(text)) if form == "csv" else map(json.loads, text.splitlines())
    classes = "cat (of any age & size); dog" if form == "csv" else {"cat": "of any age & size", "dog": ""}
    assert first["classes"] == classes
    assert first["guidelines"] == "Look *twice*."
    assert [row["due_at"] for row in (first, second)] == [DUE.isoformat()] * 2
    assert not second.get("classes")
    answered = text.replace('"label": null', '"label": "cat"') if form == "jsonl" else text
    assert len(read_labels(io.StringIO(answered), form).labels) == (2 if form == "jsonl" else 0)


def test_classes_are_told_again_where_a_round_has_others() -> None:
    other = Task(3, "pets", 5, "a-3", {}, "t3-abc", ("cat", "wolf"), DUE)
    stream = io.StringIO()
    write_tasks([*TASKS, other], stream, "jsonl", {"pets": GUIDE})
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [row.get("classes") for row in rows[1:]] == [None, {"cat": "of any age & size", "wolf": ""}]


def test_pictures_are_known_by_what_they_are() -> None:
    assert is_picture("https://example.com/a.JPG?x=1")
    assert not is_picture("https://example.com/page")
    assert is_picture("https://example.com/page", named=True)
    assert is_picture([0.5] * 64)
    assert not is_picture([0.5] * 63)
    assert not is_picture({"base64": base64.b64encode(b"no picture").decode()})
    assert address_of("javascript:alert(1)") == ""
    content, ending = content_of(address_of([[0, 255], [255, 0]])) or (b"", "")
    assert (ending, content[:4]) == ("png", b"\x89PNG")


def test_what_a_payload_holds() -> None:
    long = "A review of many words, longer than any cell of a table should be."
    assert layout_of([{"review": long, "stars": 3}], Guide()).shown == {"text", "row"}
    assert layout_of([{"a": 1, "b": "x"}], Guide()).shown == {"row"}
    assert layout_of([{"image": "images/1.png"}], Guide(picture="image")).shown == {"row"}
    assert layout_of([{"one": PNG_JSON, "two": PNG_JSON}], Guide(picture="two")).pictures == ("two", "one")


@pytest.mark.parametrize("shape", [(8, 8, 3), (3, 8, 8)])
def test_a_flat_list_of_a_coloured_square_is_its_picture(shape: tuple[int, ...]) -> None:
    """Rows of one colour each: whichever of the two orders the numbers have, they are seen as they are."""
    colours = np.repeat(np.linspace(0, 1, 24).reshape(8, 1, 3), 8, axis=1)
    logged = colours if shape[-1] == 3 else colours.transpose(2, 0, 1)

    found = content_of(address_of([float(each) for each in logged.reshape(-1)]))

    assert found is not None
    shown = np.asarray(Image.open(io.BytesIO(found[0])))
    assert np.array_equal(shown, (colours * 255).astype(np.float32).astype(np.uint8))


def answers_of(value: dict[str, object], control: str = "answer") -> list[object]:
    result = [{"from_name": control, "to_name": "text", "type": "any", "value": value}]
    return [{"result": result, "completed_by": 3, "updated_at": LATER, "was_cancelled": False}]


@pytest.mark.parametrize(
    ("scale", "control", "value", "truth"),
    [
        ("pass_fail", "Choices", {"choices": ["fail"]}, "fail"),
        ("score", "Number", {"number": 0.4}, "0.4"),
        ("stars", "Rating", {"rating": 4}, "4"),
    ],
)
def test_an_output_is_shown_and_judged(scale: str, control: str, value: dict[str, object], truth: str) -> None:
    guide = Guide("judged", scale=scale, output="answer", text="prompt")  # type: ignore[arg-type]
    task = Task(1, "bot", 1, "q1", {"prompt": "Why?", "answer": ["so", "<b>"]}, "t1-abc")
    layout = layout_of([task.payload], guide)
    assert layout.shown == {"text", "output"}
    configuration = labelling_configuration(layout.shown, guide, {})
    tree = ElementTree.fromstring(configuration.partition("-->")[2])
    (found,) = tree.iter(control)
    assert found.get("toName") == "output"
    assert shown_in(configuration) == {"text", "output"}
    form = task_form(task, task.payload, layout)
    assert json.loads(str(form["data"]["output"])) == ["so", "<b>"]  # type: ignore[index, call-overload]
    (said,) = annotations_of({"annotations": answers_of(value)})
    assert Replies("judged", scale=scale).read(said.truth)  # type: ignore[arg-type, union-attr]
    assert said.truth == truth  # type: ignore[union-attr]


@pytest.mark.parametrize("count", [3, 30])
def test_several_classes_are_chosen_or_none(count: int) -> None:
    classes = {f"class {k}": "" for k in range(count)}
    configuration = labelling_configuration({"text"}, Guide("multilabel"), classes)
    tree = ElementTree.fromstring(configuration.partition("-->")[2])
    (found,) = tree.iter("Choices" if count == 3 else "Taxonomy")
    assert found.get("choice") in (None, "multiple")
    assert found.get("maxUsages") is None
    assert len(found) == count + 1
    two = {"choices": ["class 1", "class 2"]} if count == 3 else {"taxonomy": [["class 1"], ["class 2"]]}
    none = {"choices": ["none of them"]} if count == 3 else {"taxonomy": [["none of them"]]}
    for value, truth in ((two, '["class 1", "class 2"]'), (none, "[]")):
        (said,) = annotations_of({"annotations": answers_of(value, "answers")})
        assert Replies("multilabel", classes).read(said.truth) == truth  # type: ignore[union-attr]
    assert not list(annotations_of({"annotations": answers_of({"choices": []}, "answers")}))

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opmon.labels.folder import LabelFolder
from opmon.testing import check_label_provider
from opmon.types import Guide, Task

TASKS = [Task(k, "pets", 1, f"i{k}", {"text": f"number {k}"}, f"t{k}-0123456789ab") for k in (1, 2, 3)]


class Editor:
    """Somebody who fills in the files where they are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def tasks(self) -> list[str]:
        return [
            row["task_key"] for path in sorted(self.folder.glob("*.*")) if path.suffix != ".xml" for row in rows(path)
        ]

    def say(self, key: str, truth: str | None, annotator: str, at: datetime) -> None:
        answer = {"label": truth or "", "skip": "" if truth else "x", "annotator": annotator, "at": at.isoformat()}
        for path in sorted(self.folder.glob("*.*")):
            if path.suffix == ".xml":
                continue
            there = rows(path)
            if any(row["task_key"] == key for row in there):
                save(path, [row | answer if row["task_key"] == key else row for row in there])


def rows(path: Path) -> list[dict[str, str]]:
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".csv":
        return list(csv.DictReader(text.splitlines()))
    if path.suffix == ".json":
        return [task | {"task_key": task["data"]["opmon"]} for task in json.loads(text)]
    return [json.loads(line) for line in text.splitlines()]


def save(path: Path, told: list[dict[str, str]]) -> None:
    if path.suffix == ".csv":
        names = dict.fromkeys(name for row in told for name in row)
        with path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.DictWriter(stream, list(names))
            table.writeheader()
            table.writerows(told)
    elif path.suffix == ".json":
        path.write_text(json.dumps([annotated(row) for row in told]))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in told))


def annotated(task: dict) -> dict:
    """The task as Label Studio exports it, once somebody has answered it."""
    if "at" not in task:
        return task
    result = [{"type": "choices", "value": {"choices": [task["label"]]}}] if task["label"] else []
    said = {"result": result, "was_cancelled": not result, "completed_by": {"id": 1, "email": task["annotator"]}}
    return task | {"annotations": [*task.get("annotations", []), said | {"updated_at": task["at"]}]}


@pytest.mark.parametrize("form", ["csv", "jsonl", "label-studio"])
def test_the_folder_keeps_the_contract(form: str, tmp_path: Path) -> None:
    check_label_provider(LabelFolder(str(tmp_path), form), Editor(tmp_path / "suite"))


def test_a_file_that_is_wrong_is_told_once_and_taken_when_it_is_mended(tmp_path: Path) -> None:
    folder = LabelFolder(str(tmp_path)).bind("pets", Guide())
    folder.push(TASKS)
    answers = tmp_path / "pets" / "answers.jsonl"
    answers.write_text('{"task_key": "t1-0123456789ab", "label": "cat"}\n{"task_key"')
    told = folder.pull("")
    assert list(told.said) == []
    assert "answers.jsonl: 1 line is wrong" in told.problems[0]
    assert folder.pull(told.cursor).problems == []
    answers.write_text('{"task_key": "t1-0123456789ab", "label": "cat"}\n{"task_key": "t2-0123456789ab", "skip": true}')
    mended = folder.pull(told.cursor)
    assert [(said.task_key, said.truth) for said in mended.said] == [
        ("t1-0123456789ab", "cat"),
        ("t2-0123456789ab", None),
    ]


def test_a_file_whose_tasks_are_answered_is_put_away(tmp_path: Path) -> None:
    folder = LabelFolder(str(tmp_path)).bind("pets", Guide())
    folder.push(TASKS[:2])
    folder.push(TASKS[2:])
    folder.reconcile({TASKS[2].key})
    (left,) = (tmp_path / "pets").glob("*.csv")
    assert [row["task_key"] for row in rows(left)] == [TASKS[2].key]
    (away,) = (tmp_path / "pets" / "finished").iterdir()
    assert [row["task_key"] for row in rows(away)] == [task.key for task in TASKS[:2]]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_task_of_which_a_further_opinion_is_asked_is_written_again(tmp_path: Path, form: str) -> None:
    folder = LabelFolder(str(tmp_path), form=form).bind("pets", Guide())  # type: ignore[arg-type]
    folder.push(TASKS)
    editor = Editor(tmp_path / "pets")
    editor.say(TASKS[0].key, "cat", "ann", datetime.fromisoformat("2026-03-01T12:00:00+00:00"))
    folder.push(TASKS)
    assert sorted(editor.tasks()) == sorted([*(task.key for task in TASKS), TASKS[0].key])
    folder.push(TASKS)
    assert len(editor.tasks()) == 4, "it waits there for its second answer"


def test_every_one_of_several_annotators_has_rows_to_fill_in(tmp_path: Path) -> None:
    """A file for each of them, whatever was cut off, and a new one where a further opinion is wanted."""
    folder = LabelFolder(str(tmp_path)).bind("pets", Guide())
    asked = [replace(TASKS[0], needs=2), TASKS[1], replace(TASKS[2], needs=2)]
    for _ in range(2):
        folder.push(asked)
    first, second = sorted((tmp_path / "pets").iterdir(), key=lambda path: -len(rows(path)))
    assert [row["task_key"] for row in rows(first)] == [task.key for task in asked]
    assert [row["task_key"] for row in rows(second)] == [asked[0].key, asked[2].key]
    second.unlink()  # as if it had not been written before a kill
    folder.push(asked)
    assert [row["task_key"] for row in rows(second)] == [asked[0].key, asked[2].key]
    for path, name in ((first, "ann"), (second, "ben")):
        save(path, [row | {"label": name, "annotator": name} for row in rows(path)])
    heard = {(said.task_key, said.annotator) for said in folder.pull("").said}
    assert heard == {(task.key, name) for task in asked for name in ("ann", "ben")} - {(asked[1].key, "ben")}
    folder.reconcile(set())
    for number in (3, 4):  # they differ, or have corrected themselves
        folder.push(asked[:1])
        (further,) = (tmp_path / "pets").glob("*.csv")
        assert [(row["task_key"], row["label"]) for row in rows(further)] == [(asked[0].key, "")]
        folder.reconcile(set())
        assert len(list((tmp_path / "pets" / "finished").iterdir())) == number, "nothing was written over"


def test_what_is_saved_in_a_file_that_was_put_away_is_heard(tmp_path: Path) -> None:
    folder = LabelFolder(str(tmp_path)).bind("pets", Guide())
    folder.push(TASKS)
    cursor = folder.pull("").cursor
    folder.reconcile(set())
    assert folder.pull(cursor).said == []
    (away,) = (tmp_path / "pets" / "finished").iterdir()
    save(away, [row | {"label": "cat", "annotator": "ann"} for row in rows(away)])
    late = folder.pull(cursor)
    for heard in (late, folder.pull("")):
        assert [said.task_key for said in heard.said] == [task.key for task in TASKS]
    assert folder.pull(late.cursor).said == []
    os.utime(away, (0, 0))
    folder.forget([TASKS[0].key])
    again = folder.pull(cursor).said
    assert [(said.task_key, said.at) for said in again] == [
        (task.key, datetime.fromtimestamp(0, UTC)) for task in TASKS[1:]
    ]


@pytest.mark.parametrize("finished", [False, True])
def test_a_file_that_may_not_be_read_for_a_while_is_read_then(
    finished: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who lets it be read, or the program that held it, leaves the moment when it was saved as it was."""
    folder = LabelFolder(str(tmp_path)).bind("pets", Guide())
    folder.push(TASKS)
    cursor = folder.pull("").cursor
    if finished:
        folder.reconcile(set())
    (path,) = (tmp_path / "pets").glob("**/*.csv")
    save(path, [row | {"label": "cat"} for row in rows(path)])
    may_be_opened = Path.open

    def held(own: Path, *arguments: object, **keys: object) -> object:
        if own == path:
            raise PermissionError(13, "Permission denied")
        return may_be_opened(own, *arguments, **keys)  # type: ignore[call-overload]

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", held)
        for _ in range(2):
            told = folder.pull(cursor)
            assert (list(told.said), told.problems) == ([], [f"{path} cannot be read: Permission denied"])
            cursor = told.cursor
    heard = folder.pull(cursor)
    assert [said.task_key for said in heard.said] == [task.key for task in TASKS]
    assert folder.pull(heard.cursor).said == []


@pytest.mark.parametrize("content", [b"", "task_key,label\nt9-0123456789ab,Kätzchen\n".encode("latin-1")])
def test_a_file_that_cannot_be_read_stops_no_other(tmp_path: Path, content: bytes) -> None:
    """Such as one that is on its way, or that a spreadsheet has saved in its own signs."""
    folder = LabelFolder(str(tmp_path)).bind("pets", Guide())
    broken = tmp_path / "pets" / "tasks-round-1-abcdef01.csv"
    broken.parent.mkdir()
    broken.write_bytes(content)
    folder.push(TASKS)
    assert folder.reconcile({TASKS[0].key}) == {TASKS[0].key}
    (whole,) = (path for path in broken.parent.iterdir() if path != broken)
    save(whole, [row | {"label": "cat"} for row in rows(whole)])
    told = folder.pull("")
    assert [said.task_key for said in told.said] == [task.key for task in TASKS]
    assert broken.name in told.problems[0]
    folder.reconcile(set())
    assert [path.name for path in broken.parent.iterdir() if path.is_file()] == [broken.name]
    assert folder.forget([TASKS[0].key]) == (), "it may be in the file that cannot be read"


ODD = {"text": 'He said "no; never",\r\nand\u2028left\x85 for\x0b good', "order": {"id": 7, "name": "a, b"}}


def held(folder: Path) -> object:
    """What the one file of tasks in a folder says."""
    (path,) = (path for path in folder.iterdir() if path.suffix != ".xml")
    text = path.read_bytes().decode("utf-8-sig")
    return json.loads(text) if path.suffix == ".json" else text


@pytest.mark.parametrize("form", ["csv", "jsonl", "label-studio"])
def test_one_task_is_taken_out_whatever_the_others_show(form: str, tmp_path: Path) -> None:
    """Quotes, and signs that end a line elsewhere, are text like any other, and nothing of it is changed."""
    tasks = [replace(task, payload=ODD) for task in TASKS]
    left, without = (LabelFolder(str(tmp_path / name), form=form).bind("pets", Guide()) for name in ("a", "b"))  # type: ignore[arg-type]
    left.push(tasks)
    without.push([tasks[0], tasks[2]])
    assert left.forget([tasks[1].key]) == [tasks[1].key]
    assert held(tmp_path / "a" / "pets") == held(tmp_path / "b" / "pets")


@pytest.mark.parametrize(
    ("form", "broken"), [("csv", 'task_key,label\n"t9-0123456789ab"x,\n'), ("jsonl", '{"task_key": "t9-0123456789ab"')]
)
def test_a_file_of_which_a_part_cannot_be_read_may_show_any_task(form: str, broken: str, tmp_path: Path) -> None:
    folder = LabelFolder(str(tmp_path), form=form).bind("pets", Guide())  # type: ignore[arg-type]
    folder.push(TASKS)
    (whole,) = (tmp_path / "pets").iterdir()
    torn = whole.with_name(f"tasks-round-1-torn{whole.suffix}")
    torn.write_text(broken)
    assert folder.forget([TASKS[0].key]) == ()
    assert [row["task_key"] for row in rows(whole)] == [task.key for task in TASKS[1:]], "the others are taken care of"
    assert torn.read_text() == broken

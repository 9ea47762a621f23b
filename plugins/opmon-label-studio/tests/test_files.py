"""opmon's files of Label Studio's form, taken in and given back by a real Label Studio."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real_studio import Studio

from opmon.labels.files import read_labels, write_tasks
from opmon.types import Guide, Json, Task

PICTURE = {"base64": "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}
CLASSES = Guide(classes={"cat": "of any <age> & size", 'dog "or" wolf': ""}, guidelines="Look.")
PAYLOADS: dict[str, dict[str, Json]] = {
    "picture": {"photo": dict(PICTURE), "age": 3},
    "pictures": {"front": dict(PICTURE), "back": dict(PICTURE)},
    "text": {"review": "It came late, and in two pieces, and the box was wet.", "stars": 3},
    "row": {"age": 3, "colours": ["red", "blue"], "empty": None},
}


@pytest.mark.parametrize("name", list(PAYLOADS))
@pytest.mark.parametrize("problem", ["classification", "regression"])
def test_tasks_go_out_and_answers_come_back(name: str, problem: str, studio: Studio, tmp_path: Path) -> None:
    guide = CLASSES if problem == "classification" else Guide("regression", unit="kg")
    classes = tuple(CLASSES.classes) if problem == "classification" else ()
    asked = [Task(k, "files", 1, f"i{k}", PAYLOADS[name], f"t{k}-0123456789ab", classes) for k in (1, 2, 3)]
    write_tasks(asked, tmp_path / "tasks.json", guides={"files": guide})
    configuration = (tmp_path / "tasks.xml").read_text()
    made = studio.call("POST", "/api/projects/", {"title": f"{name} {problem}", "label_config": configuration})
    studio.call("POST", f"/api/projects/{made['id']}/import", json.loads((tmp_path / "tasks.json").read_text()))
    said: list[str | float] = [*classes] or [1.5, -2.0]
    for task, truth in zip(asked, [*said, None], strict=True):
        studio.answer(made["id"], task.key, truth, "ann@example.com")
    exported = studio.call("GET", f"/api/projects/{made['id']}/export", exportType="JSON")
    (tmp_path / "exported.json").write_text(json.dumps(exported))
    labels = read_labels(tmp_path / "exported.json", monitor="files").labels
    assert [(label.task_key, label.input_id, label.truth) for label in labels] == [
        (asked[0].key, "i1", str(said[0])),
        (asked[1].key, "i2", str(said[1])),
        (asked[2].key, "i3", None),
    ]
    assert {label.annotator for label in labels} <= {"ann@example.com", f"user-{studio.user('ann@example.com')}"}
    assert read_labels(tmp_path / "tasks.json").unanswered == 3

"""Whole rounds: opmon hands its tasks to a real Label Studio, is killed in between, and its project is deleted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from monitored import ASKED, keys, state, written
from real_studio import TOKEN, Studio

from opmon.errors import NotFoundError
from opmon.monitor import Monitor

KILLED = """
import os, signal
from opmon.monitor import Monitor
from opmon.store import handing

def killed(*told):
    os.kill(os.getpid(), signal.SIGKILL)

handing.note_handed = killed  # what comes after the import
Monitor.from_yaml("opmon.yaml").advance()
"""


def answer_all(studio: Studio, project: str) -> None:
    """Ann answers each of a project's tasks through the API."""
    found = studio.project(project)
    assert found is not None
    part = {"from_name": "answer", "to_name": "row", "type": "choices", "value": {"choices": ["0"]}}
    for task in studio.tasks(found["id"]):
        studio.call("POST", f"/api/tasks/{task['id']}/annotations/", {"result": [part]})


def test_opmon_killed_between_import_and_bookkeeping_doubles_nothing(folder: Path, studio: Studio) -> None:
    path = written(folder, studio, "killed")
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=folder, env=dict(os.environ), timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    found = studio.project("opmon: killed")
    assert found is not None
    assert len(studio.tasks(found["id"])) == ASKED
    monitor = Monitor.from_yaml(path)
    assert monitor.advance().problems == []
    assert [task["data"]["opmon"] for task in studio.tasks(found["id"])] == keys(monitor)
    answer_all(studio, "opmon: killed")
    assert monitor.advance().problems == []
    assert state(monitor) == "closed"


def test_a_round_goes_on_elsewhere_when_its_project_is_deleted(folder: Path, studio: Studio) -> None:
    monitor = Monitor.from_yaml(written(folder, studio, "moved"))
    assert monitor.advance().problems == []
    found = studio.project("opmon: moved")
    assert found is not None
    first = studio.tasks(found["id"])[0]["data"]["opmon"]
    studio.answer(found["id"], first, "0", "ann@example.com")
    assert monitor.advance().problems == []
    studio.call("DELETE", f"/api/projects/{found['id']}/")
    (problem,) = monitor.advance().problems
    assert isinstance(problem, NotFoundError)
    assert f"has no project {found['id']} 'opmon: moved' any more" in str(problem)
    assert state(monitor) == "labelling"
    moved = Monitor.from_yaml(written(folder, studio, "moved", ", project: moved to here"))
    assert moved.advance().problems == []
    assert first not in keys(moved)
    there = studio.project("moved to here")
    assert there is not None
    assert [task["data"]["opmon"] for task in studio.tasks(there["id"])] == keys(moved)
    answer_all(studio, "moved to here")
    assert moved.advance().problems == []
    assert state(moved) == "closed"


@pytest.mark.parametrize("shown", [False, True])
def test_the_prediction_is_sent_only_where_it_is_shown(folder: Path, studio: Studio, shown: bool) -> None:
    name = f"shown-{shown}".lower()
    path = written(folder, studio, name)
    if shown:
        path.write_text(path.read_text().replace("labels: {", "labels: {show_prediction: true, "))
    assert Monitor.from_yaml(path).advance().problems == []
    found = studio.project(f"opmon: {name}")
    assert found is not None
    tasks = studio.tasks(found["id"])
    assert {"model prediction" in task["data"]["row"] for task in tasks} == {shown}
    assert all(task["predictions"] == [] for task in tasks)


def test_a_round_goes_on_without_label_studio(folder: Path, studio: Studio) -> None:
    path = written(folder, studio, "down")
    path.write_text(path.read_text().replace(studio.url, "http://127.0.0.1:9"))
    monitor = Monitor.from_yaml(path)
    (problem,) = monitor.advance().problems
    assert "cannot be reached" in str(problem)
    assert TOKEN not in str(problem)
    assert (state(monitor), monitor.advance().problems) == ("labelling", [])  # it rests, and is not asked again at once
    path.write_text(path.read_text().replace("http://127.0.0.1:9", studio.url))
    back = Monitor.from_yaml(path)
    assert back.advance().problems == []
    found = studio.project("opmon: down")
    assert found is not None
    assert len(studio.tasks(found["id"])) == ASKED

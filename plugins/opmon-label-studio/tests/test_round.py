"""Whole rounds: opmon hands its tasks to a real Label Studio, is killed in between, and its project is deleted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opmon_example.folder import Folder
from real_studio import TOKEN, Studio

from opmon.errors import NotFoundError
from opmon.monitor import Monitor
from opmon.store import queue, rounds
from opmon.testing.heads import network

ASKED = 30
CONFIGURATION = """
registry: {{type: folder, path: models/}}
monitors:
  {name}:
    model: models:/net@champion
    inputs: {{tensor: x}}
    source: {{path: production/}}
    columns: {{id: id}}
    round: {{min_inputs: 100}}
    sampler: {{type: srs, budget: {asked}}}
    labels: {{provider: {{type: label_studio, url: "{url}", token: "${{LABEL_STUDIO_TOKEN}}"{project}}}}}
    actions: []
    drift: {{enabled: false}}
"""
KILLED = """
import os, signal
from opmon.monitor import Monitor
from opmon.store import handing

def killed(*told):
    os.kill(os.getpid(), signal.SIGKILL)

handing.note_handed = killed  # what comes after the import
Monitor.from_yaml("opmon.yaml").advance()
"""


@pytest.fixture
def folder(tmp_path: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation of opmon with a round of inputs to come."""
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", TOKEN)
    (tmp_path / "models" / "net" / "1").mkdir(parents=True)
    network(tmp_path / "models" / "net" / "1" / "model.onnx")
    registry = Folder(str(tmp_path / "models"))
    registry.set_alias(registry.resolve("models:/net/1"), "champion")
    inputs = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)
    (tmp_path / "production").mkdir()
    pq.write_table(
        pa.table({"id": [f"i{k}" for k in range(100)], "x": list(inputs)}), tmp_path / "production" / "a.parquet"
    )
    return tmp_path


def written(folder: Path, studio: Studio, name: str, project: str = "") -> Path:
    path = folder / "opmon.yaml"
    path.write_text(CONFIGURATION.format(name=name, url=studio.url, asked=ASKED, project=project))
    return path


def keys(monitor: Monitor) -> list[str]:
    with monitor.store.read() as connection:
        return [task.key for task in queue.open_tasks(connection)]


def state(monitor: Monitor) -> str:
    with monitor.store.read() as connection:
        return str(rounds.get(connection, monitor.settings.name, 1).state)


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

"""A whole round by plugins alone: the registry is a folder, and MLflow cannot even be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from opmon_example.folder import Folder

from opmon.config import load
from opmon.errors import ConfigError
from opmon.testing.heads import network

ROUND = """
import sys
sys.modules["mlflow"] = None  # whoever imports it is told that it is not there
from datetime import UTC, datetime
from opmon.config import load
from opmon.checks import check_services
from opmon.monitor import Monitor
from opmon.store import queue, rounds
from opmon.types import Label

monitor = Monitor.from_yaml("opmon.yaml")
assert [str(problem) for problem in monitor.advance().problems] == []
with monitor.store.read() as connection:
    tasks = queue.open_tasks(connection, "net")
with monitor.store.write() as connection:
    said = [Label(task.id, "ann", "0", datetime.now(UTC)) for task in tasks]
    queue.record(connection, said, datetime.now(UTC))
assert [str(problem) for problem in monitor.advance().problems] == []
with monitor.store.read() as connection:
    round_ = rounds.get(connection, "net", 1)
print(round_.state, round_.run_id, len(tasks))
for finding in check_services(load("opmon.yaml")):
    assert finding.level == "ok", finding.message
"""

CONFIGURATION = """
registry: {type: folder, path: models/}
monitors:
  net:
    model: models:/net@champion
    inputs: {tensor: x}
    source: {type: feather, path: production/}
    columns: {id: id}
    round: {min_inputs: 100}
    sampler: {type: systematic, budget: 30}
    rules: [{type: labels_spent, most: 20}]
    actions: [{type: append, path: events.jsonl}, {type: registry_tag}]
"""


def test_an_action_that_the_registry_cannot_do_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_text(CONFIGURATION.replace("{type: registry_tag}", "{type: mlflow_project, uri: retraining/}"))
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    told = str(caught.value)
    assert f"{path}:12: monitors.net.actions[1]: 'mlflow_project' needs a registry that can run projects" in told
    assert (
        "which 'folder' cannot; the actions for it are: append, command, registry_alias, registry_tag, webhook" in told
    )
    path.write_text(CONFIGURATION.replace("{type: registry_tag}", "{type: registry_alias}"))
    assert load(path, {}).monitors["net"].actions[1].type == "registry_alias"


def test_a_whole_round_without_mlflow(tmp_path: Path) -> None:
    (tmp_path / "models" / "net" / "1").mkdir(parents=True)
    network(tmp_path / "models" / "net" / "1" / "model.onnx")
    registry = Folder(str(tmp_path / "models"))
    registry.set_alias(registry.resolve("models:/net/1"), "champion")
    inputs = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)
    table = pa.table({"id": [f"i{k}" for k in range(100)], "x": list(inputs)})
    (tmp_path / "production").mkdir()
    with pa.ipc.new_file(tmp_path / "production" / "one.arrow", table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "opmon.yaml").write_text(CONFIGURATION)

    done = subprocess.run(
        [sys.executable, "-c", ROUND], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    state, run_id, asked = done.stdout.split()
    assert (state, asked) == ("closed", "30")

    run = tmp_path / "models" / ".runs" / run_id
    numbers = {row["key"]: row["value"] for row in map(json.loads, (run / "metrics.jsonl").read_text().split("\n")[1:])}
    assert 0 <= numbers["accuracy/low"] <= numbers["accuracy/estimate"] <= numbers["accuracy/high"] <= 1
    assert {"frame.parquet", "draw.npz", "labels.parquet", "round.html"} <= {
        path.name for path in (run / "artifacts").iterdir()
    }
    tags = registry.version_tags(registry.resolve("models:/net/1"))
    assert float(tags["opmon.accuracy"]) == round(numbers["accuracy/estimate"], 4)

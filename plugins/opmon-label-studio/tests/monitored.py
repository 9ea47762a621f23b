"""A monitor whose labels come from Label Studio, with a round of inputs to come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from opmon_example.folder import Folder
from real_studio import Studio

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


def install(folder: Path) -> None:
    """Put a model, and the inputs of a round, into a folder."""
    (folder / "models" / "net" / "1").mkdir(parents=True)
    network(folder / "models" / "net" / "1" / "model.onnx")
    registry = Folder(str(folder / "models"))
    registry.set_alias(registry.resolve("models:/net/1"), "champion")
    inputs = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)
    (folder / "production").mkdir()
    pq.write_table(
        pa.table({"id": [f"i{k}" for k in range(100)], "x": list(inputs)}), folder / "production" / "a.parquet"
    )


def written(folder: Path, studio: Studio, name: str, project: str = "", asked: int = ASKED) -> Path:
    """The configuration of a monitor."""
    path = folder / "opmon.yaml"
    path.write_text(CONFIGURATION.format(name=name, url=studio.url, asked=asked, project=project))
    return path


def keys(monitor: Monitor) -> list[str]:
    with monitor.store.read() as connection:
        return [task.key for task in queue.open_tasks(connection)]


def state(monitor: Monitor) -> str:
    with monitor.store.read() as connection:
        return str(rounds.get(connection, monitor.settings.name, 1).state)

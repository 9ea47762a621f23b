"""A monitor that draws by surprise: its reference is fitted, kept with the model version, and found by the rounds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sklearn.neural_network import MLPClassifier

from opmon.cli import group
from opmon.config import MissingSettings
from opmon.scoring.conversion.converting import convert
from opmon.stages.models import missing_of
from opmon.store import queue, rounds
from opmon.types import Label


@pytest.fixture
def network(workbench: Any, tmp_path: Path) -> Any:
    """The workbench with a model that has a hidden layer, and its training data in a file."""
    import mlflow

    images, targets = workbench.images.astype(np.float32), workbench.targets
    fitted = MLPClassifier((16,), max_iter=150, random_state=0).fit(images[:900], targets[:900])
    mlflow.set_tracking_uri(workbench.tracking_uri)
    import onnx

    with mlflow.start_run(experiment_id=mlflow.MlflowClient().get_experiment_by_name("training").experiment_id):
        logged = mlflow.onnx.log_model(
            onnx.load_from_string(convert(fitted, None)),
            name="model",
            registered_model_name="network",
            pip_requirements=["onnxruntime"],
        )
    pixels = pa.FixedSizeListArray.from_arrays(pa.array(images[:900].ravel()), 64)
    pq.write_table(pa.table({"pixels": pixels, "digit": targets[:900]}), tmp_path / "training.parquet")
    workbench.model = f"models:/network/{logged.registered_model_version}"
    return workbench


def test_a_model_is_given_its_own_word_for_a_missing_text_unless_a_text_is_named() -> None:
    assert missing_of(MissingSettings()).of("<missing>").text == "<missing>"
    assert missing_of(MissingSettings()).of(None).text == ""
    for text in ("", "none"):
        assert missing_of(MissingSettings(text=text)).of("<missing>").text == text


def opmon(*arguments: object) -> str:
    result = CliRunner().invoke(
        group, [str(argument) for argument in arguments], catch_exceptions=False, standalone_mode=False
    )
    return result.output


def test_from_training_data_to_a_draw_by_surprise(network: Any, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    changes = {"sampler": {"type": "sups", "variable": "dsa", "budget": 40}, "variables": ["lsa"]}
    config = network.write_yaml(database, **changes)
    told = json.loads(opmon("reference", "-c", config, tmp_path / "training.parquet", "--label", "digit", "--json"))
    assert told["accuracy"] > 0.9
    assert told["neurons"] == 16
    network.write_window()
    monitor = network.monitor(database, **changes)
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, network.name, 1)
    frame = pq.read_table(monitor.registry.download(round_.run_id, "frame.parquet", tmp_path / "frames"))
    assert {"variable.dsa", "variable.lsa", "variable.confidence"} <= set(frame.column_names)
    assert frame["variable.dsa"].to_numpy().max() <= 1


def test_drift_is_told_against_the_training_data(network: Any, tmp_path: Path) -> None:
    changes = {"drift": {"enabled": True, "reference": None}}
    path = tmp_path / "training.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column("light", pa.array(np.linspace(0, 1, 900))), path)
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    opmon("reference", "-c", network.write_yaml(database, **changes), path, "--label", "digit")
    network.write_window(light=np.linspace(3, 4, 200))
    monitor = network.monitor(database, **changes)
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        drift = rounds.get(connection, network.name, 1).drift
    assert "light" in drift["drifted"]


def test_a_variable_without_its_reference_says_what_to_do(network: Any, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    network.write_window()
    (problem,) = network.monitor(database, variables=["lsa"]).advance().problems
    assert "opmon reference" in str(problem)


def test_compile_and_layers_of_a_registered_model(network: Any, tmp_path: Path) -> None:
    config = network.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", variables=["dsa"])
    opmon("reference", "-c", config, tmp_path / "training.parquet")
    told = json.loads(opmon("compile", "-c", config, "-o", tmp_path / "out.onnx", "--json"))
    assert told["outputs"] == ["label", "probabilities", "confidence", "margin", "entropy", "gini", "dsa"]
    (layer,) = [json.loads(line) for line in opmon("layers", "-c", config, "--json").splitlines()]
    assert (layer["neurons"], layer["default"]) == (16, True)


def test_a_round_stops_where_too_much_cannot_be_scored(workbench: Any, tmp_path: Path) -> None:
    path = workbench.write_window()
    table = pq.read_table(path)
    pixels = table["pixels"].combine_chunks().cast(pa.list_(pa.float32()))
    mixed = pa.concat_arrays([pa.nulls(60, pixels.type), pixels[60:]])
    pq.write_table(table.set_column(table.schema.get_field_index("pixels"), "pixels", mixed), path)
    limits = {"min_inputs": 200, "max_inputs": 200, "max_age": "3650d"}
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    strict = workbench.monitor(database, round=limits | {"max_unscorable": 0.25})
    (problem,) = strict.advance().problems
    assert "60 of 200 inputs cannot be scored" in str(problem)
    assert "column 'pixels' is empty (60)" in str(problem)
    assert workbench.monitor(database, round=limits | {"max_unscorable": 0.5}).advance().problems == []


def test_versions_that_nothing_needs_leave_the_disk(workbench: Any, tmp_path: Path) -> None:
    """Four versions in turn: the first is done with, the second has a round that waits, the third was the last one."""
    own = workbench.sibling(tmp_path / "own")
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    models = own.folder / ".opmon" / "models" / "digits"
    for version in ("1", "2", "3", "4"):
        if version != "1":
            assert own.new_version() == version
        for path in models.glob("*"):
            os.utime(path, (0, 0))  # nobody has asked for it for long
        own.write_window()
        monitor = own.monitor(database)
        assert monitor.advance().problems == []
        if version != "2":
            with monitor.store.read() as connection:
                tasks = [task for task in queue.open_tasks(connection, own.name) if task.round == int(version)]
            with monitor.store.write() as connection:
                given = [Label(task.id, "ann", own.truth[task.input_id], monitor.clock()) for task in tasks]
                queue.record(connection, given, monitor.clock())
            assert monitor.advance().closed == 1
    assert {path.name.partition("-")[0] for path in models.iterdir()} == {"2", "3", "4"}

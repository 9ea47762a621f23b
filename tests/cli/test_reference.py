"""``opmon reference`` and ``opmon layers`` read a model's inputs as its monitor does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sklearn.neural_network import MLPClassifier

from opmon.cli.layers import layers
from opmon.cli.reference import reference
from opmon.scoring.conversion.converting import convert

COLUMNS = [f"pixel{k}" for k in range(64)]


@pytest.fixture
def training(workbench: Any, tmp_path: Path) -> Path:
    """A network that says its columns, and training data that holds them with others, in another order."""
    images, targets = workbench.images.astype(np.float32), workbench.targets
    fitted = MLPClassifier((16,), max_iter=150, random_state=0).fit(images[:900], targets[:900])
    workbench.register(onnx.load_from_string(convert(fitted, None)), "columns", COLUMNS)
    table = {"target": targets, "row": np.arange(len(targets))}
    table |= {name: images[:, k] for k, name in reversed(list(enumerate(COLUMNS)))}
    pq.write_table(pa.table(table), tmp_path / "training.parquet")
    return tmp_path / "training.parquet"


def test_columns_are_those_of_the_signature(workbench: Any, training: Path, tmp_path: Path) -> None:
    config = workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", inputs={})
    asked = ["-c", str(config), "--label", "target", "--json", str(training)]
    found = CliRunner().invoke(reference, asked, catch_exceptions=False)
    told = json.loads(found.stdout)
    assert told["unscorable"] == 0
    assert told["accuracy"] > 0.8, "the columns go to the model in the order of its signature"


def test_why_no_input_could_be_scored_is_told(workbench: Any, training: Path, tmp_path: Path) -> None:
    config = workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", inputs={})
    table = pq.read_table(training).slice(0, 5).to_pandas()
    table["pixel7"] = "nothing"
    table.to_parquet(tmp_path / "bad.parquet")
    found = CliRunner().invoke(reference, ["-c", str(config), str(tmp_path / "bad.parquet")])
    assert "0 of 5 training inputs could be scored: " in str(found.exception)
    assert "pixel7" in str(found.exception)


def test_variables_that_learn_are_fitted(workbench: Any, training: Path, tmp_path: Path) -> None:
    config = workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", inputs={}, variables=["vae"])
    asked = ["-c", str(config), "--json", "-o", str(tmp_path / "reference.npz"), str(training)]
    found = CliRunner().invoke(reference, [*asked, "--fit", "sae"], catch_exceptions=False)
    assert json.loads(found.stdout)["learned"] == ["sae", "vae"]
    found = CliRunner().invoke(reference, [*asked, "--fit", "gini"])
    assert "--fit gini: the variable 'gini' learns nothing" in str(found.exception)


def test_layers_of_the_same_model(workbench: Any, training: Path, tmp_path: Path) -> None:
    config = workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", inputs={})
    found = CliRunner().invoke(layers, ["-c", str(config)], catch_exceptions=False)
    assert "→" in found.output

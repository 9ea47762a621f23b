"""What a tomography that was broken off may be gone on from."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opmon.config.robustness import RobustnessSettings
from opmon.robustness.result import Tomography
from opmon.scoring.scorer import Scorer
from opmon.stages.checkpoints import CheckpointFile, content_key
from opmon.stages.tomography import mapped
from opmon.stages.tomography_model import Prepared, prepared

VALUES = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
ROWS = [{"x": row.tolist()} for row in VALUES]
TRUTH = (VALUES.sum(axis=1) > 0).astype(int).astype(str).tolist()
SETTINGS = RobustnessSettings(
    kind="table", perturbations=["noise", "shift"], half_width=0.1, quality=False, min_inputs=2
)


def write_model(path: Path, weights: Any) -> Path:
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    gives = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
    tensor = numpy_helper.from_array(np.array([[-w, w] for w in weights], np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [given], [gives], [tensor])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), str(path))
    return path


def ready_with(
    path: Path, truth: Any = TRUTH, weights: Any = None, settings: Any = SETTINGS, rows: Any = ROWS
) -> Prepared:
    scorer = Scorer.open(path, "classification", device="cpu", threads=1)
    return prepared(scorer, SETTINGS, rows, truth, weights)


class Stopped(Exception):
    """The process is killed here."""


def run(path: Path, folder: Path, blocks: int | None = None) -> Tomography:
    """As the command runs it, stopped after so many blocks."""
    ready, heard = ready_with(path), []

    def progress(what: str, done: int, total: int | None) -> None:
        heard.append(done)
        if blocks is not None and len(heard) > blocks:
            raise Stopped

    kept = CheckpointFile(folder / "checkpoint.npz", content_key(path, ready, SETTINGS, 0))
    return mapped(ready, SETTINGS, 0, progress=progress, kept=kept)


def test_another_model_in_the_same_file_begins_anew(tmp_path: Path) -> None:
    """Half of the tests would be of the first one."""
    path = write_model(tmp_path / "model.onnx", [1, 1, 1])
    with pytest.raises(Stopped):
        run(path, tmp_path, blocks=3)
    assert (tmp_path / "checkpoint.npz").exists()
    write_model(path, [1, -1, 0.2])
    again, whole = run(path, tmp_path), run(path, tmp_path / "other")
    assert again.share.tolist() == whole.share.tolist()
    assert again.share[0] < 0.9


def test_the_same_run_is_gone_on_with(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.onnx", [1, 1, 0.5])
    with pytest.raises(Stopped):
        run(path, tmp_path, blocks=3)
    ready = ready_with(path)
    assert CheckpointFile(tmp_path / "checkpoint.npz", content_key(path, ready, SETTINGS, 0)).load() is not None
    assert run(path, tmp_path).share.tolist() == run(path, tmp_path / "other").share.tolist()


def test_all_that_a_run_depends_on_is_in_its_key(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.onnx", [1, 1, 1])
    other = write_model(tmp_path / "other.onnx", [1, 1, 1.001])
    ready = ready_with(path)
    finer = SETTINGS.model_copy(update={"half_width": 0.05})
    changed = dataclasses.replace(ready, reading="read otherwise")
    keys = [
        content_key(path, ready, SETTINGS, 0),
        content_key(other, ready, SETTINGS, 0),
        content_key(path, ready, SETTINGS, 1),
        content_key(path, ready, finer, 0),
        content_key(path, changed, SETTINGS, 0),
        content_key(path, ready_with(path, truth=["1", *TRUTH[1:-1], "1"]), SETTINGS, 0),
        content_key(path, ready_with(path, weights=np.arange(1.0, 401)), SETTINGS, 0),
        content_key(path, ready_with(path, rows=[*ROWS[1:], ROWS[0]]), SETTINGS, 0),
    ]
    assert len(set(keys)) == len(keys)
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(path.read_bytes())
    asked = SETTINGS.model_copy(update={"queries": {"far": "noise > 3"}})
    assert content_key(copy, ready_with(copy), asked, 0) == keys[0]


def test_a_perturbation_whose_code_has_changed_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_model(tmp_path / "model.onnx", [1, 1, 1])
    monkeypatch.syspath_prepend(str(tmp_path))
    ready, keys = ready_with(path), []
    for step in ("1", "1", "2.25"):  # of another length: Python keeps modules by time and length
        (tmp_path / "own_weather.py").write_text(f"def fog(inputs, severity, rng):\n    return inputs + {step}\n")
        sys.modules.pop("own_weather", None)
        importlib.invalidate_caches()
        settings = RobustnessSettings(kind="table", perturbations=["own_weather:fog"], min_inputs=2)
        keys.append(content_key(path, ready, settings, 0))
    assert keys[0] == keys[1] != keys[2]


def test_the_key_of_a_function_that_works_in_place_leaves_the_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = ready_with(write_model(tmp_path / "model.onnx", [1, 1, 1]))
    before = ready.evaluation.inputs.copy()
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "def rain(inputs, severity, rng):\n    inputs += severity\n    return inputs\n"
    (tmp_path / "weather_in_place.py").write_text(code)
    settings = RobustnessSettings(kind="table", perturbations=["weather_in_place:rain"], min_inputs=2)
    keys = {content_key(tmp_path / "model.onnx", ready, settings, 0) for _ in range(2)}
    assert len(keys) == 1
    assert np.array_equal(ready.evaluation.inputs, before)


def test_a_perturbation_that_fails_has_a_key(tmp_path: Path) -> None:
    """The run itself says how it fails."""
    path = write_model(tmp_path / "model.onnx", [1, 1, 1])
    failing = RobustnessSettings(kind="table", perturbations=[{"type": "noise", "columns": [99]}], min_inputs=2)
    assert content_key(path, ready_with(path), failing, 0)

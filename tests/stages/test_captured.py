"""What was drawn is captured when it is drawn: the log and its pictures may vanish afterwards."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.checks import check_monitor
from opmon.config import Settings
from opmon.errors import SourceError
from opmon.labels.queue import LabelQueue
from opmon.stages import captured
from opmon.store import handing_out, revisions, rounds, verdicts
from opmon.stores import open_filesystem
from opmon.types import ModelVersion
from opmon.web.shown import parts_of
from tests.test_stores import put

ROBUSTNESS = {"kind": "image", "perturbations": ["zoom"], "every": 1, "min_inputs": 10, "half_width": 0.2}


def network(workbench: Any, count: int) -> Any:
    """A model of pictures, fitted on so many of them."""
    from onnx import TensorProto, helper, numpy_helper
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(max_iter=100).fit(workbench.images[:count] / 16, workbench.targets[:count])
    values = {"w": fitted.coef_.T.astype(np.float32), "b": fitted.intercept_.astype(np.float32)}
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("Gemm", ["f", "w", "b"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "pictures",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 1, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 10])],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


def as_files(workbench: Any, path: Path) -> None:
    """The pixels of a window as PNG files, which the log names."""
    from PIL import Image

    table, folder = pq.read_table(path), workbench.folder / "photos"
    folder.mkdir()
    for name, pixels in zip(table["input_id"].to_pylist(), table["pixels"].to_pylist(), strict=True):
        Image.fromarray(np.rint(np.reshape(pixels, (8, 8)) / 16 * 255).astype(np.uint8)).save(folder / f"{name}.png")
    names = pa.array([f"{name}.png" for name in table["input_id"].to_pylist()])
    pq.write_table(table.drop_columns("pixels").append_column("photo", names), path)


def told(monitor: Any, folder: Path) -> dict[str, Any]:
    """All that the only round came to."""
    name = monitor.settings.name
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, name, 1)
        estimate = revisions.latest_estimate(connection, round_.id)
        (verdict,) = verdicts.latest_verdicts(connection, round_.id)
    download = monitor.registry.download
    assert estimate is not None
    return {
        "state": round_.state,
        "estimate": estimate.estimate,
        "verdict": (verdict.state, verdict.message, verdict.details),
        "pictures": download(round_.run_id, "failures/failures.png", folder).read_bytes(),
        "robustness": pq.read_table(download(round_.run_id, "robustness/robustness.parquet", folder)).to_pylist(),
    }


def test_a_log_that_vanishes_after_the_draw_is_no_problem(workbench: Any, tmp_path: Path) -> None:
    workbench.register(network(workbench, 900), "photos")
    workbench.register(network(workbench, 100), "photos")
    workbench.model = "models:/photos/1"
    as_files(workbench, workbench.write_window())
    changes = {
        "inputs": {"image": {"column": "photo", "folder": "photos/"}},
        "rules": [{"type": "accuracy_behind", "rival": "models:/photos/2", "name": "challenger"}],
        "robustness": ROBUSTNESS,
    }
    calm, monitor = (workbench.monitor(f"sqlite:///{tmp_path}/{name}.db", **changes) for name in ("calm", "gone"))
    for each in (calm, monitor):
        assert each.advance().problems == []
    workbench.answer(calm, wrong=0.2)
    assert calm.advance().closed == 1
    shutil.rmtree(workbench.folder / "photos")
    shutil.rmtree(workbench.folder / "production")
    (workbench.folder / "production").mkdir()
    shutil.rmtree(monitor.folder / "rounds")
    workbench.answer(monitor, wrong=0.2)
    cycle = monitor.advance()
    assert (cycle.problems, cycle.closed) == ([], 1)
    found, expected = told(monitor, tmp_path / "a"), told(calm, tmp_path / "b")
    assert found["verdict"][2]["disagreements"] > 0
    for what in expected:
        assert found[what] == expected[what], what
    assert monitor.compare("models:/photos/1", "models:/photos/2").disagreements > 0


def test_pictures_that_cannot_be_had_are_told_once_in_a_round_and_by_the_check(
    workbench: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    window = workbench.write_window()
    table = pq.read_table(window)
    names = [f"https://photos.example.com/{name}" for name in table["input_id"].to_pylist()]
    table = table.drop_columns("pixels").append_column("photo", pa.array(names))
    pq.write_table(table.append_column("answer", pa.array(["cat", "dog"] * (table.num_rows // 2))), window)
    changes = {
        "scoring": {"by": "logged"},
        "classes": ["cat", "dog"],
        "sampler": {"type": "srs", "budget": 40},
        "columns": {"id": "input_id", "prediction": "answer", "image": "photo"},
        "inputs": {"features": ["photo"]},
        "rules": [],
    }
    store = f"sqlite:///{tmp_path / 'opmon.db'}"
    settings = Settings.from_mapping(workbench.configuration(store, **changes), workbench.folder)
    (said,) = (one for one in check_monitor(settings, workbench.name) if one.about.endswith("pictures"))
    assert said.level == "warning"
    assert said.message.startswith("8 of 8 pictures cannot be read; of the first: column 'photo' holds an address")
    assert said.message.endswith("With opmon run inputs without their picture are drawn all the same, and shown "
                                 "without one")  # fmt: skip
    monitor = workbench.monitor(store, **changes)
    assert monitor.advance().problems == []
    workbench.truth = dict.fromkeys(workbench.truth, "cat")
    workbench.answer(monitor)
    assert monitor.advance().closed == 1
    (warning,) = (each.getMessage() for each in caplog.records if "picture" in each.getMessage())
    assert "40 of 40 pictures cannot be read; of the first: column 'photo' holds an address" in warning


@pytest.mark.parametrize("by", ["path", "base64", "address"])
def test_annotators_see_the_picture_however_the_log_holds_it(workbench: Any, tmp_path: Path, by: str) -> None:
    window, photos = workbench.write_window(), workbench.folder / "photos"
    as_files(workbench, window)
    table = pq.read_table(window)
    names = table["photo"].to_pylist()
    cells = {
        "path": names,
        "base64": [base64.b64encode((photos / name).read_bytes()).decode() for name in names],
        "address": [f"https://photos.example.com/{name}" for name in names],
    }[by]
    table = table.drop_columns("photo").append_column("photo", pa.array(cells))
    rng = np.random.default_rng(0)
    table = table.append_column("answer", pa.array(rng.choice(["cat", "dog"], table.num_rows)))
    pq.write_table(table, window)
    changes = {
        "scoring": {"by": "logged"},
        "classes": ["cat", "dog"],
        "sampler": {"type": "srs", "budget": 20},
        "columns": {"id": "input_id", "prediction": "answer", "image": "photo"},
        "inputs": {"image": {"column": "photo", "folder": "photos/"}} if by == "path" else {"features": ["photo"]},
        "rules": [],
    }
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **changes)
    assert monitor.advance().problems == []

    (task,) = LabelQueue(monitor.store).take("ann", monitor.settings.name).tasks
    (shown,) = (part for part in parts_of(monitor.settings, task.payload) if part.name == "photo")
    if by == "address":  # it is never fetched
        assert (shown.kind, str(shown.value).startswith("https://")) == ("value", True)
    else:
        assert shown.kind == "picture"
        with monitor.store.read() as connection:
            found = handing_out.cell(connection, task.key, "photo")
        assert found is not None
        assert found.value == (photos / f"{task.input_id}.png").read_bytes()


def test_pictures_of_a_store_may_vanish_after_the_draw_too(workbench: Any, tmp_path: Path, bucket: str) -> None:
    workbench.register(network(workbench, 900), "stored")
    workbench.model = "models:/stored/1"
    window = workbench.write_window()
    as_files(workbench, window)
    table = pq.read_table(window)
    for photo in table["photo"].to_pylist():
        put(bucket, f"photos/{photo}", (workbench.folder / "photos" / photo).read_bytes())
    urls = pa.array([f"{bucket}/photos/{photo}" for photo in table["photo"].to_pylist()])
    pq.write_table(table.drop_columns("photo").append_column("photo", urls), window)
    shutil.rmtree(workbench.folder / "photos")
    changes = {"inputs": {"image": {"column": "photo", "folder": bucket}}, "rules": []}
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **changes)
    assert monitor.advance().problems == []
    filesystem, path = open_filesystem(bucket)
    filesystem.delete_dir_contents(path)
    workbench.answer(monitor, wrong=0.2)
    cycle = monitor.advance()
    assert (cycle.problems, cycle.closed) == ([], 1)
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, monitor.settings.name, 1)
    assert monitor.registry.download(round_.run_id, "failures/failures.png", tmp_path).stat().st_size > 0


def test_a_folder_of_pictures_is_a_log(workbench: Any, tmp_path: Path) -> None:
    workbench.register(network(workbench, 900), "folder")
    window = workbench.write_window()
    as_files(workbench, window)
    workbench.truth = {f"{name}.png": truth for name, truth in workbench.truth.items()}
    source = {"path": "photos/", "format": "pictures"}
    columns = {"id": "file", "timestamp": "modified"}
    changes = {"source": source, "columns": columns, "inputs": {"image": {"column": "image"}}, "rules": []}
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **changes)
    assert (monitor.advance().problems, monitor.advance().opened) == ([], 0)
    assert workbench.answer(monitor) > 20
    assert monitor.advance().closed == 1
    with monitor.store.read() as connection:
        estimate = revisions.latest_estimate(connection, rounds.get(connection, workbench.name, 1).id).estimate
    assert estimate.frame_size == 200
    assert estimate.low <= workbench.true_accuracy(monitor, 1) <= estimate.high


def test_what_an_earlier_release_drew_is_asked_of_the_log(
    workbench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbench.write_window()
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}")
    with monkeypatch.context() as patch:
        patch.setattr("opmon.stages.draw.capture", lambda *given: given[-1])
        assert monitor.advance().problems == []
    from opmon.stages.rivals import predictions_of

    with monitor._at_work() as work:
        with work.store.read() as connection:
            round_ = rounds.get(connection, workbench.name, 1)
        model: ModelVersion = work.registry.resolve(workbench.model)
        assert captured.captured(work, round_, np.array([3])) is None
        assert list(predictions_of(work, round_, model, [3, 5])) == [3, 5]
        path.unlink()
        with pytest.raises(SourceError):
            predictions_of(work, round_, model, [3, 5])

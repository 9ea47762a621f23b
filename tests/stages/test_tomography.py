"""A monitor that maps the robustness of its model on the inputs that were labelled anyway."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opmon.config import Settings
from opmon.config.robustness import RobustnessSettings
from opmon.errors import ConfigError, DatabaseUnavailable, LeaseLost, RegistryUnavailable, StateUnavailable
from opmon.reports.robustness_examples import unpacked as examples_of
from opmon.reports.robustness_files import read_tomography, unpacked
from opmon.robustness.measured import Plan
from opmon.robustness.result import Tomography
from opmon.robustness.running import Budget, Checkpoint, Running
from opmon.robustness.space import Space
from opmon.robustness.tomography import tomography
from opmon.scoring.scorer import Scorer
from opmon.stages.checkpoints import CheckpointFile
from opmon.stages.tomography_model import prepared
from opmon.store import rounds, tomographies

SAMPLER = {"type": "srs", "budget": 120}
SECTION = {
    "kind": "image",
    "perturbations": ["zoom", {"type": "brightness", "name": "glare"}, "gaussian_noise"],
    "every": 1,
    "min_inputs": 20,
    "half_width": 0.1,
    "beyond_pairs": 4,
    "queries": {"far": "zoom > 2", "both": "zoom > 2 and glare > 2"},
}


def one_round(workbench: Any, database: str, **options: Any) -> Any:
    monitor = workbench.monitor(database, sampler=SAMPLER, **options)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor)
    monitor.advance()
    return monitor


def round_of(monitor: Any, name: str, number: int = 1) -> Any:
    with monitor.store.read() as connection:
        return rounds.get(connection, name, number)


def kept(monitor: Any, name: str, folder: Path) -> Tomography:
    run = round_of(monitor, name).run_id
    return read_tomography(monitor.registry.download(run, "robustness", folder))


def test_tomography_of_a_round(workbench: Any, tmp_path: Path) -> None:
    monitor = one_round(workbench, f"sqlite:///{tmp_path / 'opmon.db'}", robustness=SECTION)
    round_ = round_of(monitor, workbench.name)
    assert round_.state == "closed"
    result = kept(monitor, workbench.name, tmp_path / "got")
    assert len(result.tests) == 216
    assert result.space.names == ("zoom", "glare", "gaussian-noise")
    assert 0.7 < result.share[0] <= 1
    assert result.facts["relation"] == "as labelled"
    history = monitor.registry.metric_history
    assert [v for *_, v in history(round_.timeline_run_id, "robustness/query/far")] == [result.ask("zoom > 2").value]
    tags = monitor.registry.version_tags(monitor.registry.resolve(workbench.model))
    assert float(tags["opmon.robustness"]) == pytest.approx(result.ask("all").value, abs=1e-4)
    assert float(tags["opmon.robustness.both"]) < float(tags["opmon.robustness.far"])
    with monitor.store.read() as connection:
        beside = tomographies.of_round(connection, workbench.name, 1)
        assert beside is not None
        assert unpacked(tomographies.tests_of(connection, beside.round_id) or b"").ask("all") == result.ask("all")
        shown = examples_of(tomographies.examples_of(connection, beside.round_id) or b"")
    assert (beside.summary["value"], beside.summary["queries"].keys()) == (result.ask("all").value, {"far", "both"})
    assert [each.label for each in shown][:1] == ["unperturbed"]
    assert all(len(each.pictures) == 6 for each in shown)
    for artifact in ("robustness/robustness.html", "robustness/gallery.png", "robustness/voxels.png"):
        assert monitor.registry.download(round_.run_id, artifact, tmp_path / "one").is_file()


def test_it_is_due_every_so_many_rounds(workbench: Any, tmp_path: Path) -> None:
    monitor = one_round(workbench, f"sqlite:///{tmp_path / 'opmon.db'}", robustness={**SECTION, "every": 2})
    key = "robustness/aggregate"
    timeline = round_of(monitor, workbench.name).timeline_run_id
    assert monitor.registry.metric_history(timeline, key) == []
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor)
    monitor.advance()
    assert len(monitor.registry.metric_history(timeline, key)) == 1


def test_lexicon_of_ones_own(workbench: Any) -> None:
    (workbench.folder / "words.txt").write_text("big large great\n")
    section = {"kind": "text", "perturbations": [{"type": "synonym", "lexicon": "words.txt"}]}
    settings = Settings.from_mapping(workbench.configuration("sqlite:///o.db", robustness=section), workbench.folder)
    found = settings.monitor(workbench.name).robustness
    assert found is not None
    assert found.perturbations[0].plugin.words == {"big": ("large", "great")}
    section["perturbations"] = [{"type": "synonym", "lexicon": "none.txt"}]
    with pytest.raises(ConfigError, match=r"none\.txt cannot be read"):
        Settings.from_mapping(workbench.configuration("sqlite:///o.db", robustness=section), workbench.folder)


def test_extractor_of_ones_own(workbench: Any, tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Abs", ["x"], ["f"])]
    shape = [None, 64]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("f", TensorProto.FLOAT, shape)],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "f.onnx")
    section = {**SECTION, "extractor": str(tmp_path / "f.onnx")}
    monitor = one_round(workbench, f"sqlite:///{tmp_path / 'opmon.db'}", robustness=section)
    result = kept(monitor, workbench.name, tmp_path / "got")
    assert result.quality is not None
    assert result.quality[-1] > result.quality[0] == 0


class StoppedError(BaseException):
    """The process is killed here."""


def test_a_kill_costs_no_more_than_a_block(workbench: Any, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    monitor = workbench.monitor(database, sampler=SAMPLER, robustness=SECTION)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor)
    heard: list[int] = []

    def dies(what: str, done: int, total: int | None) -> None:
        if what == "tests":
            heard.append(done)
            if len(heard) == 3:
                raise StoppedError

    monitor.progress = dies
    with pytest.raises(StoppedError):
        monitor.advance()
    assert round_of(monitor, workbench.name).state == "estimated"
    seen_again: list[int] = []
    monitor.progress = lambda what, done, total: seen_again.append(done) if what == "tests" else None
    assert monitor.advance().closed == 1
    assert seen_again[0] >= heard[1], "what was done before the kill is not done again"
    assert kept(monitor, workbench.name, tmp_path / "got").inferences > heard[-1]


def test_a_tomography_that_is_not_possible_stops_no_round(
    workbench: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    section = {**SECTION, "kind": "table", "perturbations": [{"type": "noise", "columns": [99]}], "queries": {}}
    with caplog.at_level(logging.WARNING):
        monitor = one_round(workbench, f"sqlite:///{tmp_path / 'opmon.db'}", robustness=section)
    assert round_of(monitor, workbench.name).state == "closed"
    assert "has no tomography: columns are numbered" in caplog.text


def dies_once(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[Exception]:
    """A tomography that fails so the first time; gives the errors so far."""
    died: list[Exception] = []

    def dies(*given: Any, **named: Any) -> Tomography:
        if not died:
            died.append(error)
            raise error
        return tomography(*given, **named)

    monkeypatch.setattr("opmon.stages.tomography.tomography", dies)
    return died


def test_whatever_a_tomography_dies_of_stops_no_round(
    workbench: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_once(monkeypatch, ValueError("array must not contain infs or NaNs"))
    with caplog.at_level(logging.WARNING):
        monitor = one_round(workbench, f"sqlite:///{tmp_path / 'opmon.db'}", robustness=SECTION)
    assert round_of(monitor, workbench.name).state == "closed"
    assert "has no tomography: ValueError: array must not contain infs or NaNs" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        DatabaseUnavailable("the database did not answer"),
        RegistryUnavailable("MLflow did not answer"),
        StateUnavailable("the disk is full"),
        OSError(errno.ENOSPC, "No space left on device"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_tomography_waits_for_what_does_not_answer(
    workbench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    died = dies_once(monkeypatch, error)
    monitor = one_round(workbench, f"sqlite:///{tmp_path / 'opmon.db'}", robustness=SECTION)
    assert died
    assert round_of(monitor, workbench.name).state == "estimated"
    assert monitor.advance().closed == 1
    assert len(kept(monitor, workbench.name, tmp_path / "got").tests) == 216


def test_a_tomography_that_another_process_took_over_is_left_to_it(
    workbench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_once(monkeypatch, LeaseLost("another process is at it"))
    with pytest.raises(LeaseLost):
        one_round(workbench, f"sqlite:///{tmp_path / 'opmon.db'}", robustness=SECTION)


def test_too_few_labels_wait(workbench: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="opmon"):
        section = {**SECTION, "min_inputs": 500}
        monitor = one_round(workbench, f"sqlite:///{tmp_path / 'opmon.db'}", robustness=section)
    assert round_of(monitor, workbench.name).state == "closed"
    assert "waits for 500 labelled inputs" in caplog.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"perturbations": ["zom"]}, "there is no such perturbation"),
        ({"perturbations": []}, "at least one"),
        ({"perturbations": ["zoom", "zoom"]}, "stands twice"),
        ({"perturbations": [{"type": "zoom", "factors": [0.1]}]}, "factors"),
        ({"perturbations": [{"type": "zoom", "name": "order"}]}, "words of a query"),
        ({"perturbations": ["nowhere:fog"]}, "nowhere"),
        ({"queries": {"bad": "zom > 1"}}, "did you mean 'zoom'"),
        ({"queries": {"bad name!": "zoom > 1"}}, "letters, digits"),
        ({"half_width": 0.9}, "half_width"),
        ({"max_inputs": 5}, "max_inputs"),
        ({"kind": "sound"}, "kind"),
        ({"evry": 3}, "every"),
    ],
    ids=range(12),
)
def test_broken_section(workbench: Any, changes: dict[str, Any], words: str) -> None:
    values = workbench.configuration("sqlite:///opmon.db", robustness={**SECTION, **changes})
    with pytest.raises(ConfigError, match=words):
        Settings.from_mapping(values, workbench.folder)


def test_checkpoint_file(tmp_path: Path) -> None:
    space, file = Space(("a", "b"), levels=2), CheckpointFile(tmp_path / "c.npz", "run 1")
    states: list[Checkpoint] = []

    def look(tests: Any, visits: Any) -> Any:
        from opmon.robustness.evaluation import Judged

        for rows, start, stop in visits:
            yield (rows, start, stop), Judged(np.ones(len(rows) * (stop - start), bool), None)

    Running(look, space, 300, None, Plan(), Budget(), save=states.append).run()
    assert file.load() is None
    file.save(states[0])
    file.save(states[-1])
    again = file.load()
    assert again is not None
    assert again.done is not None
    assert states[-1].done is not None
    assert np.array_equal(again.done.right, states[-1].done.right)
    assert again.half_width == states[-1].half_width
    assert CheckpointFile(file.path, "run 2").load() is None
    for size in (100, 0):  # a machine that lost its power may leave a file with nothing in it
        file.path.write_bytes(file.path.read_bytes()[:size])
        assert file.load() is None


def test_encoded_pictures_of_a_monitor(workbench: Any, tmp_path: Path) -> None:
    """Production logs PNG bytes of another size than the model's, which wants them normalised."""
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).normal(size=(64, 10)).astype(np.float32)
    images, targets = workbench.images[:900] / 16, workbench.targets[:900]
    scaled = ((np.rint(images * 255) / 255 - 0.3) / 0.4).astype(np.float32)
    for _ in range(300):
        odds = np.exp(scaled @ weights - (scaled @ weights).max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        odds[np.arange(900), targets] -= 1
        weights -= 0.003 * scaled.T @ odds / 9
    nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["logits"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [None, 10])],
        [numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    workbench.register(model, "pictures")
    path = workbench.write_window(160)
    _as_png(path, 16)
    section = {**SECTION, "quality": False, "half_width": 0.15}
    monitor = workbench.monitor(
        f"sqlite:///{tmp_path / 'opmon.db'}", sampler=SAMPLER, robustness=section, scores="logits",
        inputs={"image": {"column": "pixels", "mean": [0.3], "std": [0.4]}},
        round={"min_inputs": 160, "max_inputs": 160, "max_age": "3650d"},
    )  # fmt: skip
    monitor.advance()
    workbench.answer(monitor)
    monitor.advance()
    result = kept(monitor, workbench.name, tmp_path / "got")
    timeline = round_of(monitor, workbench.name).timeline_run_id
    (*_, accuracy) = monitor.registry.metric_history(timeline, "accuracy/estimate")[-1]
    assert result.share[0] == pytest.approx(accuracy, abs=1e-6)  # the same pictures, the same preprocessing
    assert result.ask("zoom == 5").value < result.share[0] - 0.1


def _as_png(path: Path, side: int) -> None:
    """The file with each list of pixels as a PNG of ``side`` × ``side``."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    table, cells = pq.read_table(path), []
    for pixels in table["pixels"].to_pylist():
        picture = Image.fromarray(np.rint(np.reshape(pixels, (8, 8)) / 16 * 255).astype(np.uint8))
        coded = io.BytesIO()
        picture.resize((side, side), Image.Resampling.NEAREST).save(coded, "PNG")
        cells.append(coded.getvalue())
    at = table.schema.get_field_index("pixels")
    pq.write_table(table.set_column(at, "pixels", pa.array(cells, pa.binary())), path)


@pytest.mark.parametrize(("stands_gaps", "left_out"), [(True, 0), (False, 3)])
def test_inputs_with_gaps_take_part_where_the_model_answers_them(
    tmp_path: Path, stands_gaps: bool, left_out: int
) -> None:
    from skl2onnx import to_onnx
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    values = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    steps = [SimpleImputer()] if stands_gaps else []
    fitted = make_pipeline(*steps, LogisticRegression()).fit(values, values[:, 0] > 0)
    (tmp_path / "model.onnx").write_bytes(to_onnx(fitted, values[:1], target_opset=17).SerializeToString())
    scorer = Scorer.open(tmp_path / "model.onnx", "classification", features=["a", "b"], device="cpu")
    rows = [{"a": float(a), "b": None if row < 3 else float(b)} for row, (a, b) in enumerate(values)]
    settings = RobustnessSettings(kind="table", perturbations=["noise"], relation="own")
    assert prepared(scorer, settings, rows, [None] * 40, None).left_out == left_out


def test_the_scores_of_support_vectors_are_in_the_order_of_the_classes(tmp_path: Path) -> None:
    from skl2onnx import to_onnx
    from sklearn.svm import SVC

    values = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    fitted = SVC().fit(values, values[:, 0] > 0)
    (tmp_path / "model.onnx").write_bytes(to_onnx(fitted, values[:1], target_opset=17).SerializeToString())
    scorer = Scorer.open(tmp_path / "model.onnx", "classification", features=["a", "b"], device="cpu")
    rows = [{"a": float(a), "b": float(b)} for a, b in values]
    settings = RobustnessSettings(kind="table", perturbations=["noise"], relation="own")
    ready = prepared(scorer, settings, rows, [None] * 40, None)
    assert (ready.model(ready.evaluation.inputs).argmax(axis=1) == fitted.predict(values)).all()

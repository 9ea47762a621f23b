"""A monitor whose sampler looks at a hidden layer: from the log to a draw, through kills, with every kind of model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon import plugins
from opmon.abc import Sampler
from opmon.checks import check_monitor
from opmon.config import Settings
from opmon.errors import PluginError
from opmon.jobs.neurons import Neurons, as_bytes, from_bytes
from opmon.samplers._checks import take_all
from opmon.samplers.ces import CrossEntropy, section_indices
from opmon.samplers.sections import sections_of
from opmon.scoring.conversion.converting import convert
from opmon.scoring.scored import Scored
from opmon.stages import draw, open, score
from opmon.stages.frames import NAME, levels_as_bytes, read_frame, read_inputs, write_frame
from opmon.stages.levels import Levels
from opmon.store import draws, revisions, rounds
from opmon.types import Draw, Frame

CES = {"sampler": {"type": "ces", "budget": 60}}


@pytest.fixture
def network(workbench: Any) -> Any:
    return workbench.with_network()


def convolutional(seed: int = 0) -> onnx.ModelProto:
    """8 × 8 pictures through a convolution of 6 channels and two dense layers."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(seed)
    weights = {
        "shape": np.array([-1, 1, 8, 8], np.int64),
        "kernel": rng.normal(size=(6, 1, 3, 3)).astype(np.float32),
        "dense": rng.normal(size=(6, 10)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Reshape", ["pixels", "shape"], ["picture"]),
        helper.make_node("Conv", ["picture", "kernel"], ["maps"]),
        helper.make_node("Relu", ["maps"], ["fired"]),
        helper.make_node("GlobalAveragePool", ["fired"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", "dense"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
    ]
    graph = helper.make_graph(
        nodes,
        "pictures",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["inputs", 64])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["inputs", 10])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def one(monitor: Any, number: int = 1) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


def frame_of(monitor: Any, tmp_path: Path, number: int = 1) -> Frame:
    path = monitor.registry.download(one(monitor, number).run_id, NAME, tmp_path / f"frame-{number}")
    return read_frame(path, activations=True)


def hidden_layer(workbench: Any, rows: np.ndarray) -> np.ndarray:
    """What the layer's 16 neurons say, straight from the graph."""
    import mlflow
    import onnxruntime

    model = mlflow.onnx.load_model(workbench.model)
    layer = next(node.input[0] for node in reversed(model.graph.node) if node.op_type in ("Gemm", "MatMul"))
    model.graph.output.append(onnx.helper.make_tensor_value_info(layer, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run([layer], {session.get_inputs()[0].name: rows})[0])


def test_ces_from_the_log_to_mlflow(network: Any, database: str, tmp_path: Path) -> None:
    monitor = network.monitor(database, **CES)
    window = network.write_window()
    assert monitor.advance().problems == []
    frame = frame_of(monitor, tmp_path)
    rows = np.stack(pq.read_table(window)["pixels"].to_pylist()).astype(np.float32)
    layer = hidden_layer(network, rows)
    layer = layer[:, layer.max(axis=0) > layer.min(axis=0)]
    assert frame.activations is not None
    np.testing.assert_array_equal(frame.activations, section_indices(layer, 20))

    drawn = draws.unpack_draw(one(monitor).draw or b"")
    same = CrossEntropy().draw(Frame({}, activations=layer), 60, draw.generator(one(monitor), 0))
    assert drawn.positions.tolist() == same.positions.tolist(), "coded or not, the draw is the same"
    network.answer(monitor)
    assert monitor.advance().closed == 1
    with monitor.store.read() as connection:
        found = revisions.latest_estimate(connection, one(monitor).id)
    assert found is not None
    assert any("not unbiased" in note for note in found.estimate.notes)


def test_a_frame_without_activations_is_scored_again(network: Any, sqlite: str, tmp_path: Path) -> None:
    """A round that was scored before its sampler could be run."""
    network.write_window()
    monitor = network.monitor(sqlite, **CES)
    with monitor._at_work() as work:
        open.open_round(work)
        score.score_round(work, one(monitor))
        path = work.round_folder(one(monitor)) / NAME
        pq.write_table(pq.read_table(path).drop_columns("activations"), path)
        assert read_frame(path, activations=True).activations is None
    assert monitor.advance().problems == []
    assert one(monitor).state == "labelling"


def test_a_later_configuration_leaves_an_open_round_its_sampler(network: Any, sqlite: str, tmp_path: Path) -> None:
    network.write_window()
    with network.monitor(sqlite, **CES)._at_work() as work:
        open.open_round(work)
    later = network.monitor(sqlite)
    network.write_window()
    assert later.advance().problems == []
    assert frame_of(later, tmp_path, 1).activations is not None
    assert frame_of(later, tmp_path, 2).activations is None
    assert draws.unpack_draw(one(later, 1).draw or b"").design == "ces"


def test_a_model_without_a_hidden_layer_costs_no_round(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, **CES)
    workbench.write_window()
    for _ in range(2):
        (problem,) = monitor.advance().problems
        assert "no hidden layer" in str(problem)
        assert "ces" in str(problem)
    with monitor.store.read() as connection:
        assert rounds.count(connection, workbench.name) == 0
    plain = workbench.monitor(sqlite)
    assert plain.advance().opened == 1, "the inputs are all still there for another sampler"
    assert one(plain).inputs == 200


def test_check_tries_the_layer(network: Any, workbench: Any, sqlite: str) -> None:
    network.write_window()

    def told(**changes: Any) -> dict[str, Any]:
        settings = Settings.from_mapping(network.configuration(sqlite, **changes), network.folder)
        return {finding.about.split(": ")[1]: finding for finding in check_monitor(settings, network.name)}

    assert {finding.level for finding in told(**CES).values()} == {"ok"}
    wrong = told(**CES, layer="nowhere")["scoring"]
    assert (wrong.level, wrong.needs_change) == ("problem", True)
    assert "no layer 'nowhere'" in wrong.message


def test_a_convolutional_layer_is_pooled(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    workbench.register(convolutional(), "pictures")
    workbench.write_window()
    monitor = workbench.monitor(sqlite, **CES, layer="fired")
    assert monitor.advance().problems == []
    found = frame_of(monitor, tmp_path).activations
    assert found is not None
    assert found.shape == (200, 6), "one neuron for each channel"


def test_a_regression_network_is_drawn_by_its_layer(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    from sklearn.neural_network import MLPRegressor

    images, targets = workbench.images.astype(np.float32), workbench.targets.astype(np.float32)
    fitted = MLPRegressor(hidden_layer_sizes=(8,), max_iter=60, random_state=0).fit(images[:900], targets[:900])
    workbench.register(onnx.load_from_string(convert(fitted, None)), "number")
    workbench.write_window()
    monitor = workbench.monitor(sqlite, **CES, problem="regression", rules=[])
    assert monitor.advance().problems == []
    found = frame_of(monitor, tmp_path).activations
    assert found is not None
    assert 1 < found.shape[1] <= 8
    workbench.answer(monitor)
    assert monitor.advance().closed == 1


def test_activations_that_are_no_numbers_are_set_aside(network: Any, sqlite: str) -> None:
    """Large inputs overflow in the layer: they cannot be coded, and are counted."""
    path = network.write_window()
    table = pq.read_table(path)
    pixels = np.stack(table["pixels"].to_pylist()).astype(np.float32)
    pixels[:3] *= 3e37
    lists = pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), 64)
    pq.write_table(table.set_column(table.schema.get_field_index("pixels"), "pixels", lists), path)
    monitor = network.monitor(sqlite, **CES)
    assert monitor.advance().problems == []
    assert (one(monitor).inputs, one(monitor).unscorable) == (197, 3)


@dataclass(frozen=True)
class Nearest(Sampler):
    """A sampler of somebody else's: the inputs nearest to the middle of a layer in 256 levels."""

    @property
    def activation_levels(self) -> int:
        return 256

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        assert frame.activations is not None
        assert frame.activations.max() == 255
        return take_all(Frame({}, size=budget), rng)


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    entry = EntryPoint("nearest", f"{__name__}:Nearest", "opmon.samplers")
    monkeypatch.setattr(EntryPoint, "load", lambda self: Nearest if self is entry else _load(self))
    known = plugins._registered("sampler")
    known["nearest"] = entry
    yield
    del known["nearest"]


_load = EntryPoint.load


@pytest.mark.usefixtures("foreign")
def test_a_sampler_of_somebody_else_gets_what_it_asks_for(network: Any, sqlite: str, tmp_path: Path) -> None:
    network.write_window()
    monitor = network.monitor(sqlite, sampler={"type": "nearest", "budget": 20})
    with monitor._at_work() as work:
        open.open_round(work)
        score.score_round(work, one(monitor))
        draw.draw_round(work, one(monitor))
    assert one(monitor).state == "drawn"


@pytest.mark.parametrize("levels", [1, 257, True, "20"])
def test_levels_that_cannot_be_are_told(levels: Any) -> None:
    sampler = type("Odd", (Nearest,), {"activation_levels": levels})
    with pytest.raises(PluginError, match=r"Odd\.activation_levels"):
        plugins.made("sampler", "odd", sampler)


def scored(values: np.ndarray) -> Scored:
    return Scored(0, np.arange(len(values)), np.zeros(len(values)), {}, {}, values.astype(np.float32))


def test_coded_over_what_is_kept() -> None:
    """A dead neuron is not kept, and pieces are coded as the whole is."""
    values = np.random.default_rng(0).normal(size=(1000, 5)).astype(np.float32)
    values[:, 2] = 0.25
    pieces = [from_bytes(pa.chunked_array([as_bytes([piece])])) for piece in np.array_split(values, 7)]
    levels = Levels.of([*pieces, values[:0]], 20)
    found = np.concatenate([levels.code(piece) for piece in pieces])
    np.testing.assert_array_equal(found, section_indices(np.delete(values, 2, axis=1), 20))


def test_inputs_that_are_left_out_do_not_stretch_the_range(network: Any, sqlite: str, tmp_path: Path) -> None:
    """One that production logged before, and that lights up the layer as no other does."""
    first = pq.read_table(network.write_window())
    pixels = np.stack(first["pixels"].to_pylist()).astype(np.float32)
    pixels[7] *= 100
    lists = pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), 64)
    ids = pa.array(["w1-7", *(f"new-{k}" for k in range(199))])
    order = pa.array([7, *(k for k in range(200) if k != 7)])
    again = pa.table({"input_id": ids, "at": first["at"], "pixels": lists.take(order)})
    monitor = network.monitor(sqlite, **CES)
    monitor.advance()
    pq.write_table(again, network.folder / "production" / "window-002.parquet")
    assert monitor.advance().problems == []
    found = frame_of(monitor, tmp_path, 2).activations
    layer = hidden_layer(network, np.delete(pixels, 7, axis=0))
    layer = layer[:, layer.max(axis=0) > layer.min(axis=0)]
    assert one(monitor, 2).duplicates == 1
    np.testing.assert_array_equal(found, section_indices(layer, 20))


def test_a_layer_that_never_varies_is_one_neuron() -> None:
    values = np.ones((10, 4), np.float32)
    assert Levels.of([values], 20).code(values).tolist() == [[0]] * 10


def test_a_layer_too_wide_keeps_evenly_spaced_neurons(caplog: pytest.LogCaptureFixture) -> None:
    values = np.random.default_rng(0).normal(size=(100, 9)).astype(np.float32)
    neurons = Neurons(3)
    for _ in range(2):
        np.testing.assert_array_equal(neurons.take(scored(values)).activations, values[:, [0, 4, 8]])
    assert caplog.text.count("9 neurons: 3 of them") == 1
    assert Neurons(9).take(scored(values)).activations is not None


@pytest.mark.parametrize("sections", [2, 7, 20, 255, 256])
def test_what_is_coded_is_coded_the_same_again(sections: int) -> None:
    values = np.random.default_rng(1).normal(size=(3000, 4)).astype(np.float32)
    coded = section_indices(values, sections)
    again = sections_of(coded, coded.min(axis=0), coded.max(axis=0), sections)
    np.testing.assert_array_equal(coded, again)
    assert section_indices(coded, sections) is coded


def test_frames_with_and_without_activations_are_read_back(tmp_path: Path) -> None:
    codes = np.random.default_rng(2).integers(0, 20, (70_000, 3)).astype(np.uint8)
    numbers = np.arange(70_000)
    table = pa.table({"row": numbers, "variable.x": numbers / 2, "activations": levels_as_bytes(codes)})
    assert write_frame(tmp_path / NAME, [table[:100], table[100:]]) == 70_000
    found = read_frame(tmp_path / NAME, activations=True)
    np.testing.assert_array_equal(found.activations, codes)
    np.testing.assert_array_equal(found.variable("x"), numbers / 2)
    assert read_inputs(tmp_path / NAME, np.array([0, 99, 100, 69_999]))["row"].to_pylist() == [0, 99, 100, 69_999]
    write_frame(tmp_path / NAME, [table.drop_columns("activations")])
    assert read_frame(tmp_path / NAME, activations=True).activations is None

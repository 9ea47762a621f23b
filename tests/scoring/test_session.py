from __future__ import annotations

import dataclasses
import logging
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opmon.errors import InputError, ModelError
from opmon.scoring import session
from opmon.scoring.devices import CUDA, Providers
from opmon.scoring.graph.file import read_model
from opmon.scoring.scorer import Scorer
from opmon.scoring.session import open_session

needs_no_gpu = session.provider_missing(CUDA)


@pytest.mark.parametrize("device", ["cuda", Providers.of(["cuda", "cpu"], {"cuda": {"device_id": 1}})])
def test_session_cuda_that_is_not_there_says_what_is_missing(dense, device) -> None:
    assert needs_no_gpu is not None, "this test is written for a machine without a GPU"
    with pytest.raises(ModelError, match=r"device: cuda .*libcuda\.so\.1.*driver"):
        open_session(dense("Softmax"), device)


def test_session_provider_of_another_build_names_those_of_this_one(dense) -> None:
    with pytest.raises(ModelError, match=r"device: openvino was asked for.*built without it, and has .*cpu.*install"):
        open_session(dense("Softmax"), Providers.of(["openvino"]))


def test_session_of_named_providers_says_where_the_operators_run(dense) -> None:
    opened = open_session(dense("Softmax"), Providers.of(["cpu"]))
    assert (opened.device, str(opened.placement)) == ("cpu", "2 of 2 operators on cpu")
    assert open_session(dense("Softmax"), "cpu").placement == opened.placement


def test_session_auto_runs_on_the_cpu_and_says_so_once(dense, caplog) -> None:
    session._say_once.cache_clear()
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            assert open_session(dense("Softmax"), "auto").device == "cpu"
    assert [record.getMessage().startswith("scoring on the CPU") for record in caplog.records] == [True]


@pytest.mark.parametrize(
    ("options", "message"), [({"device": "gpu"}, "auto, cpu, cuda"), ({"threads": 0}, "at least 1")]
)
def test_session_wrong_options_are_told(dense, options, message) -> None:
    with pytest.raises(InputError, match=message):
        open_session(dense("Softmax"), **options)


def test_session_newer_ir_version_is_a_clear_error(dense) -> None:
    with pytest.raises(ModelError, match=r"update onnxruntime, or .* older IR version"):
        Scorer.open(dense("Softmax", ir_version=99), "classification", device="cpu")


def test_session_newer_opset_is_a_clear_error(dense) -> None:
    with pytest.raises(ModelError, match=r"export the model again with an older opset"):
        Scorer.open(dense("Softmax", opset=99), "classification", device="cpu")


def test_session_unknown_operator_is_a_clear_error(dense) -> None:
    with pytest.raises(ModelError, match=r"cannot load the model.*Nonsense"):
        Scorer.open(dense("Nonsense"), "classification", scores="logits", device="cpu")


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, os.urandom(1000), b"\x80\x04pickle"])
def test_session_file_that_is_no_model_is_an_error(tmp_path, content) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="not an ONNX file"):
        Scorer.open(path, "classification", device="cpu")
    with pytest.raises(ModelError, match="no file"):
        Scorer.open(tmp_path / "gone.onnx", "classification", device="cpu")


def test_session_feeds_that_do_not_fit_name_both_shapes(dense) -> None:
    opened = open_session(dense("Softmax"), "cpu")
    with pytest.raises(ModelError, match=r"float32\[2, 3\].*x: float\[\?, 4\]"):
        opened.run(["y"], {"x": np.zeros((2, 3), np.float32)})


@pytest.mark.parametrize("bound", [None, ("cpu", 0)])
def test_session_outputs_of_text_are_read_bound_or_not(graph, bound) -> None:
    """Bound to a device's memory, ONNX Runtime ends the process with them: it is run here as on a GPU."""
    nodes = [
        helper.make_node("ArgMax", ["x"], ["place"], axis=1, keepdims=0),
        helper.make_node("Gather", ["names", "place"], ["label"]),
        helper.make_node("Softmax", ["x"], ["scores"]),
    ]
    outputs = [("label", TensorProto.STRING, ["n"]), ("scores", TensorProto.FLOAT, ["n", 3])]
    path = graph(nodes, [("x", TensorProto.FLOAT, ["n", 3])], outputs, {"names": np.array(["a", "b", "c"], object)})
    opened = dataclasses.replace(open_session(path, "cpu"), bound=bound)
    label, scores = opened.run(["label", "scores"], {"x": np.eye(3, dtype=np.float32)})
    assert label.tolist() == ["a", "b", "c"]
    assert opened.run(["scores"], {"x": np.eye(3, dtype=np.float32)})[0].tolist() == scores.tolist()


def test_session_inputs_of_text_are_not_bound(graph) -> None:
    path = graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        [("x", TensorProto.STRING, ["n"])],
        [("y", TensorProto.STRING, ["n"])],
    )
    opened = dataclasses.replace(open_session(path, "cpu"), bound=("cpu", 0))
    assert opened.run(["y"], {"x": np.array(["a", "b"], object)})[0].tolist() == ["a", "b"]


def external(folder, location: str):
    """A model whose weight is kept in ``location``."""
    weight = numpy_helper.from_array(np.eye(4, 3, dtype=np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    shape = TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "model",
        [helper.make_tensor_value_info("x", shape, ["n", 4])],
        [helper.make_tensor_value_info("y", shape, ["n", 3])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    tensor = model.graph.initializer[0]
    raw = tensor.raw_data
    onnx.external_data_helper.set_external_data(tensor, location, 0, len(raw))
    tensor.ClearField("raw_data")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return raw


def test_session_weights_beside_the_model_are_loaded(tmp_path) -> None:
    (tmp_path / "w.bin").write_bytes(external(tmp_path, "w.bin"))
    scorer = Scorer.open(tmp_path / "model.onnx", "classification", device="cpu")
    assert scorer.session.run(["y"], {"x": np.eye(4, dtype=np.float32)})[0].tolist() == np.eye(4, 3).tolist()


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "..\\w.bin", ""])
def test_session_weights_outside_of_the_models_folder_are_refused(tmp_path, location) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(external(folder, location))
    with pytest.raises(ModelError, match="outside of its own folder"):
        read_model(folder / "model.onnx")


def test_session_weights_behind_a_link_are_refused(tmp_path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(external(folder, "w.bin"))
    (folder / "w.bin").symlink_to(tmp_path / "w.bin")
    with pytest.raises(ModelError, match="outside of its own folder"):
        read_model(folder / "model.onnx")
    (folder / "w.bin").unlink()
    with pytest.raises(ModelError, match="not beside it"):
        read_model(folder / "model.onnx")


def test_session_import_is_lazy_and_telemetry_is_off() -> None:
    code = (
        "import sys, os; import opmon.scoring.scorer; assert 'onnxruntime' not in sys.modules; "
        "from opmon.scoring.session import provider_missing; provider_missing('CUDAExecutionProvider'); "
        "assert 'onnxruntime' in sys.modules; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    for given, expected in ((environment, "1"), (environment | {"ORT_DISABLE_TELEMETRY": "0"}, "0")):
        done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected

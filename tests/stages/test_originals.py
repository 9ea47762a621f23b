"""A scikit-learn model that is converted to be judged is held against the original, by ``check`` and by the rounds."""

from __future__ import annotations

import operator
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from opmon.checks import Finding, check_monitor
from opmon.checks.trial import STOPS
from opmon.config import Settings
from opmon.scoring.conversion.converting import convert
from opmon.scoring.conversion.original import Refusals, answered
from opmon.stages.originals import Agreement
from opmon.store import rounds


def log_sklearn(bench: Any, model: Any, name: str, beside: Path | None = None) -> None:
    """Watch a model in its scikit-learn flavour, and with an ONNX file ``beside`` it in that one too."""
    import mlflow

    mlflow.set_tracking_uri(bench.tracking_uri)
    folder, client = bench.folder / "logged", mlflow.MlflowClient(bench.tracking_uri)
    signature = mlflow.models.infer_signature(bench.images[:5], bench.targets[:5])
    options = {"pip_requirements": ["scikit-learn"], "serialization_format": "cloudpickle"}
    mlflow.sklearn.save_model(model, str(folder), signature=signature, **options)
    if beside is not None:
        shutil.copy(beside, folder / "model.onnx")
        told = yaml.safe_load((folder / "MLmodel").read_text())
        told["flavors"]["onnx"] = {"data": "model.onnx", "onnx_version": "1"}
        (folder / "MLmodel").write_text(yaml.safe_dump(told))
    run = client.create_run(client.get_experiment_by_name("training").experiment_id).info
    client.log_artifacts(run.run_id, str(folder), "model")
    if not client.search_registered_models(f"name='{name}'"):
        client.create_registered_model(name)
    version = client.create_model_version(name, f"{run.artifact_uri}/model", run.run_id).version
    bench.model = f"models:/{name}/{version}"


def findings(bench: Any, about: str, **changes: Any) -> list[Finding]:
    settings = Settings.from_mapping(bench.configuration(database(bench), **changes), bench.folder)
    return [item for item in check_monitor(settings, bench.name) if item.about.endswith(about)]


def advance(bench: Any, **changes: Any) -> tuple[list[str], str | None]:
    """The problems of a cycle, and what the first round's run says of the conversion."""
    import mlflow

    monitor = bench.monitor(database(bench), **changes)
    problems = [str(problem) for problem in monitor.advance().problems]
    with monitor.store.read() as connection:
        run_id = rounds.get(connection, bench.name, 1).run_id
    tags = mlflow.MlflowClient(bench.tracking_uri).get_run(run_id).data.tags if run_id else {}
    return problems, tags.get("opmon.conversion")


def database(bench: Any) -> str:
    return f"sqlite:///{bench.folder / 'opmon.db'}"


@pytest.fixture
def plain(workbench: Any) -> Any:
    return LogisticRegression(max_iter=30).fit(workbench.images[:600], workbench.targets[:600])


@pytest.mark.filterwarnings("ignore")
def test_a_conversion_that_answers_alike_says_so(workbench, plain) -> None:
    log_sklearn(workbench, plain, "alike")
    workbench.write_window()
    (finding,) = findings(workbench, "conversion", convert_sklearn=True)
    told = "200 of 200 answers of the converted model are those of the original"
    assert (finding.level, finding.message) == ("ok", told)
    assert advance(workbench, convert_sklearn=True) == ([], told)
    assert len(list((workbench.folder / ".opmon").rglob("compared-*.json"))) == 1


@pytest.fixture
def unlike(workbench: Any, tmp_path: Path) -> Any:
    """A model with an ONNX file of another one."""
    images, digits = workbench.images[:600], workbench.targets[:600]
    model, other = (LogisticRegression(C=1e-4).fit(images, (digits < limit).astype(int)) for limit in (2, 4))
    (tmp_path / "other.onnx").write_bytes(convert(other))
    log_sklearn(workbench, model, "unlike", tmp_path / "other.onnx")
    return workbench


def test_a_conversion_that_answers_otherwise_is_refused(unlike) -> None:
    unlike.write_window()
    (finding,) = findings(unlike, "conversion", convert_sklearn=True)
    assert (finding.level, finding.needs_change) == ("problem", True)
    assert "answers of the converted model are those of the original, and 99.5 % must be" in finding.message
    (problem,), told = advance(unlike, convert_sklearn=True)
    assert finding.message.removesuffix(f" {STOPS}") in problem
    assert told is None


def test_what_was_only_told_while_production_was_judged_is_refused_once_it_is_not(unlike) -> None:
    unlike.write_window(said=np.resize([0, 1], 200))
    judged = {"id": "input_id", "timestamp": "at", "prediction": "said"}
    limits = {"min_inputs": 200, "max_inputs": 200, "max_age": "3650d", "max_skew": 1}
    assert advance(unlike, convert_sklearn=True, columns=judged, round=limits)[0] == []
    unlike.write_window()
    (problem,), _ = advance(unlike, convert_sklearn=True)
    assert "another model would be judged" in problem


def test_where_production_is_judged_an_unlike_conversion_is_only_told(unlike) -> None:
    unlike.write_window(said=np.resize([0, 1], 200))
    judged = {"id": "input_id", "timestamp": "at", "prediction": "said"}
    more = {"convert_sklearn": True, "columns": judged}
    (finding,) = findings(unlike, "conversion", **more)
    assert (finding.level, finding.needs_change) == ("warning", False)
    problems, told = advance(
        unlike, **more, round={"min_inputs": 200, "max_inputs": 200, "max_age": "3650d", "max_skew": 1}
    )
    assert problems == []
    assert "of 200 answers of the converted model" in str(told)


def test_an_original_that_does_not_answer_is_told_as_not_compared(workbench, plain, caplog) -> None:
    plain.predict = operator.methodcaller("no_licence")
    log_sklearn(workbench, plain, "silent")
    workbench.write_window()
    (finding,) = findings(workbench, "conversion", convert_sklearn=True)
    assert finding.level == "warning"
    assert "not compared with the original: the original does not answer" in finding.message
    assert advance(workbench, convert_sklearn=True) == ([], None)
    assert "was converted, and not compared with its original" in caplog.text


@pytest.fixture
def boosting(workbench: Any) -> Any:
    """A model of trees that scikit-learn asks for no gaps, and a window with some."""
    path = workbench.write_window()
    table = pq.read_table(path)
    pixels = np.stack(table["pixels"].to_pylist())
    pixels[[7, 150], 20] = np.nan
    lists = pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), 64)
    pq.write_table(table.set_column(2, "pixels", lists), path)
    kind = GradientBoostingClassifier(n_estimators=2, max_depth=2)
    return kind.fit(workbench.images[:600], workbench.targets[:600])


def test_inputs_that_the_original_refuses_are_left_out_and_told(workbench, boosting, caplog) -> None:
    log_sklearn(workbench, boosting, "refusing")
    (finding,) = findings(workbench, "conversion", convert_sklearn=True)
    told = (
        "198 of 198 answers of the converted model are those of the original; the original refuses 2 inputs that the "
        "converted model answers (ValueError: Input X contains NaN)"
    )
    assert (finding.level, finding.message) == ("warning", told)
    assert advance(workbench, convert_sklearn=True) == ([], told)
    assert told in caplog.text


def test_an_unlike_conversion_is_refused_though_the_original_refuses_an_input(workbench, boosting, tmp_path) -> None:
    (tmp_path / "other.onnx").write_bytes(convert(boosting))
    boosting.fit(workbench.images[:600], workbench.targets[:600] // 2)
    log_sklearn(workbench, boosting, "unlike", tmp_path / "other.onnx")
    (finding,) = findings(workbench, "conversion", convert_sklearn=True)
    assert (finding.level, finding.needs_change) == ("problem", True)
    assert "of 198 answers" in finding.message
    (problem,), _ = advance(workbench, convert_sklearn=True)
    assert "another model would be judged; the original refuses 2 inputs" in problem


class Picky:
    """Answers its input, unless that is among ``refused``; counts how often it is asked."""

    def __init__(self, *refused: int) -> None:
        self.refused, self.asked = refused, 0

    def predict(self, rows: np.ndarray) -> np.ndarray:
        self.asked += 1
        if np.isin(rows, self.refused).any():
            raise ValueError("no such number")
        return rows[:, 0]


@pytest.mark.parametrize("refused", [(), (0,), (999,), (3, 4, 500), tuple(range(1000))])
def test_an_input_that_is_refused_costs_itself_alone(refused) -> None:
    model, refusals = Picky(*refused), Refusals(most=20)
    places, answers = answered(model, {"X": np.arange(1000.0)[:, None]}, refusals)
    left = min(len(refused), 20)
    assert places.tolist() == answers.tolist() == sorted(set(range(1000)) - set(refused))
    assert (refusals.count, refusals.unasked) == (left, len(refused) - left)
    assert refusals.reason == ("ValueError: no such number" if refused else "")
    assert model.asked <= 1 + 2 * 10 * left


def test_an_original_that_refuses_too_many_inputs_is_not_asked_for_ever() -> None:
    model, refusals = Picky(*range(0, 1000, 2)), Refusals(most=20)
    places, _ = answered(model, {"X": np.arange(1000.0)[:, None]}, refusals)
    assert 15 < len(places) < 25
    assert refusals.count + refusals.unasked + len(places) == 1000
    assert str(Agreement(20, 20, 20, 960, "no")).endswith("answers (no), and was not asked about 960 more")


def test_an_original_that_is_not_trusted_is_told_as_not_compared(workbench, plain, tmp_path) -> None:
    (tmp_path / "other.onnx").write_bytes(convert(plain))
    log_sklearn(workbench, plain, "both", tmp_path / "other.onnx")
    workbench.write_window()
    (finding,) = findings(workbench, "conversion")
    assert (finding.level, finding.message.partition(":")[0]) == (
        "ok",
        "not compared with the original (onnx, python_function, sklearn)",
    )
    (trusted,) = findings(workbench, "conversion", convert_sklearn=True)
    assert trusted.message.startswith("200 of 200 answers")


def test_numbers_are_compared_by_how_much_they_differ(workbench, tmp_path) -> None:
    model = Ridge().fit(workbench.images[:600], workbench.targets[:600])
    other = Ridge(alpha=9.0).fit(workbench.images[:600], workbench.targets[:600])
    plain = {"problem": "regression", "rules": [], "sampler": {"type": "srs"}, "convert_sklearn": True}
    workbench.write_window()
    log_sklearn(workbench, model, "number")
    (finding,) = findings(workbench, "conversion", **plain)
    assert finding.message.startswith("200 of 200 answers")
    (tmp_path / "other.onnx").write_bytes(convert(other))
    shutil.rmtree(workbench.folder / "logged")
    log_sklearn(workbench, model, "number", tmp_path / "other.onnx")
    (finding,) = findings(workbench, "conversion", **plain)
    assert finding.level == "problem"


@pytest.mark.parametrize(("equal", "enough"), [(1000, True), (995, True), (994, False)])
def test_one_in_two_hundred_answers_may_differ(equal, enough) -> None:
    assert Agreement(1000, equal).enough == enough


def labelled(tmp_path: Path, *then: Any, **more: np.ndarray) -> Any:
    """A model of ten classes whose label is made by some nodes of the logits ``z``."""
    weights: dict[str, Any] = {"w": np.random.default_rng(0).normal(size=(64, 10)).astype(np.float32), **more}
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["pixels", "w"], ["z"]), *then],
        "m",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 64])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]),
            helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 10]),
        ],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    return model


def test_digits_that_are_lost_on_the_way_to_the_model_are_told(workbench, tmp_path) -> None:
    weights = np.zeros((64, 10), np.float32)
    weights[0] = np.linspace(0, 1e-9, 10)
    nodes = [
        helper.make_node("ArgMax", ["z"], ["label"], axis=1, keepdims=0),
        helper.make_node("Softmax", ["z"], ["p"]),
    ]
    workbench.register(labelled(tmp_path, *nodes, w=weights), "late")
    path = workbench.write_window(size=100)
    table = pq.read_table(path)
    pixels = np.stack(table["pixels"].to_pylist()).astype(float)
    pixels[:, 5] = 1.7e9 + np.arange(100)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), 64)
    pq.write_table(table.set_column(2, "pixels", lists), path)
    (finding,) = findings(workbench, "digits")
    assert finding.level == "warning"
    assert finding.message.startswith("100 different values of 'pixels[5]' become 2 as float32, which the model takes")


def test_labels_that_do_not_go_with_the_scores_are_told(workbench, tmp_path) -> None:
    nodes = [helper.make_node("ArgMax", ["z"], ["label"], axis=1, keepdims=0), helper.make_node("Neg", ["z"], ["m"])]
    workbench.register(labelled(tmp_path, *nodes, helper.make_node("Softmax", ["m"], ["p"])), "upside-down")
    workbench.write_window(size=60)
    (finding,) = findings(workbench, "trial")
    assert finding.level == "warning"
    assert "('label') is not the class with the greatest score ('p') for 60 of 60 inputs" in finding.message

"""``opmon init --from`` looks at a registered model and a log, and what it writes is right for them."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlflow
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from opmon.cli import DONE, WRONG
from opmon.config import load
from opmon.monitor import Monitor
from opmon.scoring.conversion import converting
from opmon.setup.by_onnx import _of_one
from opmon.setup.choice import Choice, written
from opmon.setup.inputs import Fit
from opmon.setup.log import Log
from opmon.stages import originals
from tests.cli.test_commands import opmon
from tests.conftest import Workbench, point_mlflow_at
from tests.setup.pyfuncs import Gaps, Looks, Share, Towns

NAMES = ["age", "income", "amount"]
ROWS = 300
VALUES = np.random.default_rng(0).normal(size=(ROWS, 3)).astype(np.float32)
CODES = (VALUES.sum(axis=1) > 0).astype(int)
WORDS = np.where(CODES, "default", "paid")


def fitted(targets: Any, model: Any = None) -> Any:
    from sklearn.linear_model import LogisticRegression

    return (model or LogisticRegression()).fit(VALUES, targets)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, mlflow_uri: str) -> Workbench:
    """A store with models: ``codes`` answers 0 or 1, ``price`` a number, ``three`` three; ``plain`` is no ONNX."""
    import onnx
    from mlflow.models import infer_signature
    from skl2onnx import to_onnx
    from sklearn.linear_model import LinearRegression

    point_mlflow_at(mlflow_uri)
    bench = Workbench(tmp_path_factory.mktemp("shop"), mlflow_uri, "shop", "")

    def graph(model: Any, **options: Any) -> Any:
        return onnx.load_from_string(to_onnx(model, VALUES[:1], target_opset=17, **options).SerializeToString())

    bench.register(graph(fitted(CODES), options={"zipmap": False}), "codes", NAMES)
    for targets in (1 - CODES, CODES):
        bench.register(graph(fitted(targets), options={"zipmap": False}), "turned", NAMES)
    bench.register(graph(fitted(10 * VALUES[:, 0] + 50, LinearRegression())), "price", NAMES)
    bench.register(graph(fitted(np.stack([VALUES[:, 0]] * 3, 1), LinearRegression())), "three", NAMES)
    frame = {name: VALUES[:, place].astype(float) for place, name in enumerate(NAMES)}
    experiment = mlflow.MlflowClient().get_experiment_by_name("training").experiment_id
    with mlflow.start_run(experiment_id=experiment):
        mlflow.sklearn.log_model(
            fitted(WORDS),
            name="model",
            registered_model_name="plain",
            pip_requirements=[],
            serialization_format="cloudpickle",
            signature=infer_signature(pa.table(frame).to_pandas()),
        )
        mlflow.pyfunc.log_model(
            python_model=Looks(),
            name="looks",
            registered_model_name="looks",
            pip_requirements=[],
            signature=infer_signature(np.zeros((2, 1, 4, 4), np.float32), np.zeros((2, 3), np.float32)),
        )
        mlflow.pyfunc.log_model(
            python_model=Share(),
            name="custom",
            registered_model_name="custom",
            pip_requirements=[],
            signature=infer_signature(pa.table(frame).to_pandas()),
        )
        mlflow.pyfunc.log_model(
            python_model=Towns(),
            name="towns",
            registered_model_name="towns",
            pip_requirements=[],
            signature=infer_signature(pa.table(frame).to_pandas()),
        )
        for name, model in (("gaps", Gaps(scores=False)), ("open", Gaps(scores=True))):
            mlflow.pyfunc.log_model(
                python_model=model,
                name=name,
                registered_model_name=name,
                pip_requirements=[],
                signature=infer_signature(pa.table(frame).to_pandas()),
            )
        mlflow.pytorch.log_model(
            network(),
            name="network",
            registered_model_name="network",
            pip_requirements=[],
            serialization_format="pickle",
            signature=infer_signature(pa.table(frame).to_pandas()),
        )
        for name, model in boosted().items():
            flavor = mlflow.xgboost if name.startswith("xgboost") else mlflow.lightgbm
            flavor.log_model(
                model,
                name=name,
                registered_model_name=name,
                pip_requirements=[],
                signature=infer_signature(pa.table(frame).to_pandas()),
            )
    return bench


def boosted() -> dict[str, Any]:
    """Boosted trees: of XGBoost and of LightGBM's own kind they are data, of LightGBM's scikit-learn kind pickled."""
    import lightgbm
    import xgboost

    light = fitted(CODES, lightgbm.LGBMClassifier(n_estimators=5, verbose=-1))
    return {
        "xgboost": fitted(CODES, xgboost.XGBClassifier(n_estimators=5)),
        "lightgbm": light.booster_,
        "pickled": fitted(WORDS, lightgbm.LGBMClassifier(n_estimators=5, verbose=-1)),
    }


def network() -> Any:
    """A linear network that gives the two classes as logits."""
    import torch

    linear = torch.nn.Linear(3, 2)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[-1.0] * 3, [1.0] * 3]))
        linear.bias.zero_()
    return linear


Written = Callable[..., tuple[int, str, dict[str, Any]]]


@pytest.fixture
def init(shop: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Writes a log and runs ``opmon init --from``: the exit code, what it said, and the monitor it wrote."""

    def init(model: str, log: dict[str, Any], *options: str, names: Any = NAMES) -> tuple[int, str, dict[str, Any]]:
        monkeypatch.chdir(tmp_path)
        columns: dict[str, Any] = {"request_id": [f"r{k}" for k in range(ROWS)]}
        columns |= {name: VALUES[:, place] for place, name in enumerate(names)}
        Path("log").mkdir()
        pq.write_table(pa.table({**columns, **log}), "log/log.parquet")
        address = f"models:/{model}/{_newest(shop, model)}"
        code, out, err = opmon(
            "init", "--from", address, "--source", "log", "--tracking-uri", shop.tracking_uri, *options
        )
        path = Path("opmon.yaml")
        given = yaml.safe_load(path.read_text())["monitors"] if path.exists() else {}
        return code, out + err, next(iter(given.values()), {})

    return init


def _newest(shop: Workbench, model: str) -> str:
    versions = mlflow.MlflowClient(shop.tracking_uri).search_model_versions(f"name='{model}'")
    return str(max(int(version.version) for version in versions))


def test_a_log_in_other_words_and_other_case_is_understood_and_run_goes_through(init: Written, tmp_path: Path) -> None:
    when = pa.array(np.datetime64("2026-03-01T00:00", "us") + np.arange(ROWS) * np.timedelta64(60, "s"))
    log = {"verdict": WORDS, "at": when, "label": np.roll(WORDS, 7)}
    code, out, monitor = init("codes", log, names=["Age", "INCOME", "amount_"])
    assert (code, out.splitlines()[-1]) == (DONE, "ready: opmon run would go through")
    assert monitor["inputs"] == {"features": ["Age", "INCOME", "amount_"]}
    assert monitor["classes"] == {"paid": 0, "default": 1}
    assert monitor["columns"] == {"id": "request_id", "timestamp": "at", "prediction": "verdict"}
    assert monitor["truth"] == {"column": "label"}
    assert (monitor["problem"], monitor["scoring"]) == ("classification", {"by": "onnx"})
    assert "what the model calls 0 is called paid" in out
    settings = load(tmp_path / "opmon.yaml")
    assert Monitor.from_settings(settings, "codes").advance().problems == []


def test_fields_inside_of_columns_are_found(init: Written) -> None:
    inside = [dict(zip(NAMES, row, strict=True)) for row in VALUES.tolist()]
    log = {"features": inside, "response": [json.dumps({"label": word, "ms": 3}) for word in WORDS]}
    code, out, monitor = init("codes", log, names=[])
    assert (code, out.splitlines()[-1]) == (DONE, "ready: opmon run would go through"), out
    assert monitor["inputs"] == {"features": ["features.age", "features.income", "features.amount"]}
    assert monitor["columns"]["prediction"] == "response.label"
    assert monitor["classes"] == {"paid": 0, "default": 1}


def test_fields_of_json_inside_of_json_are_found(init: Written) -> None:
    inside = [json.dumps({"customer": dict(zip(NAMES, row, strict=True)), "v": "2"}) for row in VALUES.tolist()]
    code, out, monitor = init("codes", {"payload": inside}, names=[])
    assert (code, out.splitlines()[-1]) == (DONE, "ready: opmon run would go through"), out
    assert monitor["inputs"]["features"] == [f"payload.customer.{name}" for name in NAMES]


def test_a_reason_stands_apart_from_its_value_however_long_that_is() -> None:
    uri = "models:/a-model-with-a-name-that-is-quite-long@champion"
    for extra in range(20):
        text = written([Choice(("model",), uri[: 30 + extra], "version 2")], indent=4)
        assert yaml.safe_load(text) == {"model": uri[: 30 + extra]}


def test_answers_of_another_version_are_not_held_against_this_one(init: Written, shop: Workbench) -> None:
    """Version 1 of ``turned`` says the opposite of version 2, which is watched."""
    mine = np.arange(ROWS) % 2 == 0
    said = np.where(mine, WORDS, np.where(WORDS == "paid", "default", "paid"))
    code, out, monitor = init("turned", {"decision": said, "model_version": np.where(mine, "v2", "v1")})
    assert code == DONE, out
    assert monitor["columns"]["prediction"] == "decision"
    assert monitor["columns"]["model_version"] == "model_version"
    assert monitor["classes"] == {"paid": 0, "default": 1}


def request(form: str, row: list[float]) -> dict[str, Any]:
    if form == "v2":
        tensors = [{"name": name, "shape": [1], "datatype": "FP64"} for name in NAMES]
        return {"inputs": [{**each, "data": [value]} for each, value in zip(tensors, row, strict=True)]}
    return {"dataframe_split": {"columns": NAMES, "data": [row]}} if form == "mlflow" else {"instances": [row]}


@pytest.mark.parametrize("form", ["mlflow", "v2", "sagemaker"])
def test_a_log_of_requests_is_read_by_the_source_for_it(
    shop: Workbench, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [json.dumps(request(form, row)) for row in VALUES.astype(float).tolist()]
    said = [json.dumps({"predictions": [word]}) for word in WORDS.tolist()]
    Path("log").mkdir()
    if form == "sagemaker":
        lines = [
            {
                "captureData": {
                    side: {"data": data, "encoding": "JSON", "mode": side[8:].upper()}
                    for side, data in (("endpointInput", one), ("endpointOutput", other))
                },
                "eventMetadata": {"eventId": f"e{place}", "inferenceTime": "2026-03-01T00:00:00Z"},
            }
            for place, (one, other) in enumerate(zip(given, said, strict=True))
        ]
        Path("log/log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    else:
        columns = {"databricks_request_id": [f"r{k}" for k in range(ROWS)], "request": given, "response": said}
        pq.write_table(pa.table({**columns, "timestamp_ms": 1_772_000_000_000 + np.arange(ROWS)}), "log/log.parquet")
    code, out, err = opmon("init", "--from", "models:/codes/1", "--source", "log", "--tracking-uri", shop.tracking_uri)
    assert code == DONE, out + err
    assert out.splitlines()[-1] == "ready: opmon run would go through"
    monitor = yaml.safe_load(Path("opmon.yaml").read_text())["monitors"]["codes"]
    assert monitor["source"] == {"path": "log", "type": "requests", "layout": form}
    assert monitor["columns"] == {"id": "id", "timestamp": "timestamp", "prediction": "prediction"}
    assert monitor["classes"] == {"paid": 0, "default": 1}
    assert monitor.get("inputs") == (None if form != "sagemaker" else {"tensor": "features"})


@pytest.mark.parametrize("recorded", [False, True])
def test_a_log_in_an_object_store(
    shop: Workbench, bucket: str, recorded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import opmon as public
    from opmon.stores import open_filesystem

    monkeypatch.chdir(tmp_path)
    rows = [dict(zip(NAMES, row, strict=True)) for row in VALUES.astype(float).tolist()]
    if recorded:
        with public.Recorder(f"{bucket}/log") as recorder:
            for row, word in zip(rows, WORDS.tolist(), strict=True):
                recorder.record(row, prediction=word)
    else:
        filesystem, path = open_filesystem(f"{bucket}/log/day=2026-03-01/log.parquet")
        table = pa.Table.from_pylist([row | {"id": f"r{place}"} for place, row in enumerate(rows)])
        pq.write_table(table.append_column("prediction", pa.array(WORDS)), path, filesystem=filesystem)
    source = ("--source", f"{bucket}/log")
    code, out, err = opmon("init", "--from", "models:/codes/1", *source, "--tracking-uri", shop.tracking_uri)
    assert (code, out.splitlines()[-1]) == (DONE, "ready: opmon run would go through"), out + err
    monitor = yaml.safe_load(Path("opmon.yaml").read_text())["monitors"]["codes"]
    assert monitor["source"] == {"path": f"{bucket}/log", **({"type": "recorder"} if recorded else {})}
    assert monitor["columns"]["id"] == "id"
    assert monitor["columns"]["prediction"] == "prediction"
    assert Monitor.from_settings(load(tmp_path / "opmon.yaml"), "codes").advance().problems == []


def test_names_of_two_lines_and_a_class_alone_make_a_file_that_can_be_read(init: Written) -> None:
    """As columns are called in a sheet, and as production answers where the other class is rare."""
    said = {"net\nincome": VALUES[:, 0], "the\nkind": ["new", "old"] * (ROWS // 2), "prediction": ["paid"] * ROWS}
    code, out, monitor = init("codes", said, names=["a", "b", "c"])
    assert code == DONE, out
    assert "the log has: request_id, a, b, c, net" in out, "what the file also says, in a comment"
    assert (monitor["columns"]["prediction"], "classes" in monitor) == ("prediction", False)
    assert "of the classes only 'paid' was seen: name all of them in 'classes'" in out


def test_a_refusal_is_said_once(init: Written) -> None:
    code, out, _ = init("three", {"note": ["x"] * ROWS})
    assert code == WRONG
    assert out.count("There are these ways") == 1


def test_a_model_without_onnx_needs_trust_or_logged_answers(init: Written, tmp_path: Path) -> None:
    code, out, _ = init("plain", {})
    assert code == WRONG
    assert not (tmp_path / "opmon.yaml").exists()
    for way in ("mlflow.onnx.log_model", "--trust", "production's own answers in a column"):
        assert way in out


def test_with_trust_a_scikit_learn_model_is_converted(init: Written) -> None:
    code, out, monitor = init("plain", {"said": WORDS}, "--trust")
    assert code == DONE, out
    assert (monitor["scoring"], monitor["convert_sklearn"]) == ({"by": "onnx"}, True)
    assert "300 of 300 answers of the converted model are those of the original" in out


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "library"), [("xgboost", "XGBoost"), ("lightgbm", "LightGBM")])
def test_boosted_trees_whose_file_is_data_are_converted_without_trust(init: Written, name: str, library: str) -> None:
    code, out, monitor = init(name, {"decision": WORDS})
    assert (code, out.splitlines()[-1]) == (DONE, "ready: opmon run would go through")
    assert monitor["scoring"] == {"by": "onnx"}
    assert "convert_sklearn" not in monitor
    assert f"converted from {library}, whose file is data: no code of it is run; 300 of 300 answers" in out


@pytest.mark.filterwarnings("ignore")
def test_boosted_trees_that_are_pickled_need_trust(init: Written) -> None:
    _, out, monitor = init("pickled", {"decision": WORDS})
    assert monitor["scoring"] == {"by": "logged"}, out
    assert "it is pickled, and loading it runs its code" in out


@pytest.mark.filterwarnings("ignore")
def test_boosted_trees_that_are_pickled_are_converted_with_trust(init: Written) -> None:
    code, out, monitor = init("pickled", {"decision": WORDS}, "--trust")
    assert (code, out.splitlines()[-1]) == (DONE, "ready: opmon run would go through")
    assert (monitor["scoring"], monitor["convert_sklearn"]) == ({"by": "onnx"}, True)


def started_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a network and of tensors, which starts a process only where a file or a tensor is another."""
    known: dict[Any, Any] = {}

    def answered(network: Any, *tensors: dict[str, Any]) -> Any:
        files = sorted(path for path in network.model.rglob("*") if path.is_file())
        key = (
            tuple((str(path.relative_to(network.model)), path.read_bytes()) for path in files),
            tuple((name, values.tobytes()) for each in tensors for name, values in each.items()),
        )
        if key not in known:
            known[key] = function(network, *tensors)
        return known[key]

    return answered


@pytest.mark.filterwarnings("ignore")
def test_with_trust_a_network_is_exported_and_compared(
    init: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ``init``, by its check and by the first round: the model is the same, and so are the rows."""
    monkeypatch.setattr(converting, "exported", started_once(converting.exported))
    monkeypatch.setattr(originals, "outputs_of", started_once(originals.outputs_of))
    code, out, monitor = init("network", {"decision": WORDS}, "--trust")
    assert (code, out.splitlines()[-1]) == (DONE, "ready: opmon run would go through"), out
    assert monitor["scoring"] == {"by": "onnx", "trust": True}
    assert monitor["classes"] == {"paid": 0, "default": 1}
    assert "converted from PyTorch; 300 of 300 answers of the converted model are those of the original" in out
    assert Monitor.from_settings(load(tmp_path / "opmon.yaml"), "network").advance().problems == []
    (kept,) = (tmp_path / ".opmon").rglob("compared-*.json")
    told = json.loads(kept.read_text())
    assert (told["inputs"], told["equal"], told["refused"]) == (ROWS, ROWS, 0)


@pytest.mark.filterwarnings("ignore")
def test_a_network_is_not_run_without_trust(init: Written) -> None:
    _, out, monitor = init("network", {"decision": WORDS})
    assert monitor["scoring"] == {"by": "logged"}, out
    assert "the registered model has no ONNX file and is not asked: --trust lets opmon run it" in out


def test_with_trust_a_model_of_any_flavor_is_asked(init: Written) -> None:
    code, out, monitor = init("custom", {"decision": WORDS}, "--trust")
    assert (code, out.splitlines()[-1]) == (DONE, "ready: opmon run would go through")
    assert monitor["scoring"] == {"by": "flavor", "trust": True}
    assert monitor["problem"] == "classification"
    assert monitor["columns"]["prediction"] == "decision"
    assert monitor["classes"] == {"paid": 0, "default": 1}, "it answers with one number between 0 and 1"


@pytest.mark.parametrize("model", ["gaps", "open"])
def test_with_trust_inputs_that_a_model_leaves_open_do_not_change_what_it_is(init: Written, model: str) -> None:
    _, out, monitor = init(model, {"said": CODES}, "--trust")
    assert (monitor["problem"], monitor["scoring"]["by"]) == ("classification", "flavor"), out
    assert "scores" not in monitor, "they are probabilities"


def test_with_trust_many_words_are_classes(init: Written) -> None:
    """So many whole numbers would be numbers."""
    _, out, monitor = init("towns", {}, "--trust")
    assert monitor["scoring"] == {"by": "flavor", "trust": True}, out
    assert monitor["problem"] == "classification"


def test_with_trust_pictures_in_text_reach_a_model_of_arrays_and_logits_are_known_by_the_logs_classes(
    init: Written,
) -> None:
    from PIL import Image

    shade = np.arange(ROWS) % 3
    pictures = []
    for number in shade:
        stream = io.BytesIO()
        Image.fromarray(np.full((4, 4), (25, 128, 230)[number], np.uint8)).save(stream, "PNG")
        pictures.append(base64.b64encode(stream.getvalue()).decode())
    pictures[7] = pictures[7][:40]
    log = {"photo": pictures, "answer": np.array(["dunkel", "grau", "hell"])[shade]}
    code, out, monitor = init("looks", log, "--trust", names=[])
    assert (code, monitor["scoring"]["by"], monitor["scores"]) == (DONE, "flavor", "logits"), out
    assert monitor["inputs"]["image"]["column"] == "photo"
    assert monitor["classes"] == {"dunkel": 0, "grau": 1, "hell": 2}
    assert "1 cannot be scored" in out


def test_logged_answers_and_scores_are_enough(init: Written) -> None:
    scores = fitted(CODES).predict_proba(VALUES)
    code, out, monitor = init("plain", {"answer": WORDS, "scores": scores.tolist()})
    assert (code, out.splitlines()[-1]) == (DONE, "ready: opmon run would go through")
    assert monitor["scoring"] == {"by": "logged"}
    assert monitor["classes"] == ["paid", "default"], "in the order of the scores"
    assert monitor["columns"] == {"id": "request_id", "prediction": "answer", "scores": ["scores"]}
    assert "--trust lets opmon run it" in out


def test_answers_without_scores_are_drawn_alike(init: Written) -> None:
    code, out, monitor = init("plain", {"answer": WORDS})
    assert code == DONE, out
    assert monitor["sampler"]["type"] == "srs"


def test_a_score_gets_the_threshold_at_which_the_model_decides(init: Written) -> None:
    code, out, monitor = init("codes", {"risk_score": fitted(CODES).predict_proba(VALUES)[:, 1]})
    assert code == DONE, out
    assert (monitor["columns"]["prediction"], monitor["columns"]["threshold"]) == ("risk_score", 0.5)
    assert "? columns.threshold" in out, "it is a guess that is said"


def test_the_same_words_for_other_classes_are_left_out_and_told(init: Written) -> None:
    code, out, monitor = init("codes", {"prediction": np.where(CODES, 2, 1)})
    assert code == DONE, out
    assert "prediction" not in monitor["columns"]
    assert "column 'prediction' uses the model's own words for other classes" in out


def test_answers_of_something_else_are_left_out_and_told(init: Written) -> None:
    code, out, monitor = init("codes", {"prediction": np.random.default_rng(1).permutation(CODES)})
    assert code == DONE, out
    assert "prediction" not in monitor["columns"]
    assert "Was it this model version, and these inputs?" in out


def test_a_number_in_another_unit_is_left_out_and_told(init: Written) -> None:
    code, out, monitor = init("price", {"predicted_price": 1000 * (10.0 * VALUES[:, 0] + 50)})
    assert code == DONE, out
    assert monitor["problem"] == "regression"
    assert "prediction" not in monitor["columns"]
    assert "is 1000 times the model's answers: another unit" in out


def test_a_number_in_the_same_unit_is_judged(init: Written) -> None:
    _, out, monitor = init("price", {"predicted_price": np.round(10.0 * VALUES[:, 0] + 50, 2)})
    assert monitor["columns"]["prediction"] == "predicted_price", out


@pytest.mark.parametrize("said", [[200, 200], [200, 404], [None, None]])
def test_a_regression_stays_one_beside_a_column_called_like_an_answer(init: Written, said: list[int | None]) -> None:
    codes, formats = pa.array(said * (ROWS // 2), pa.int64()), ["json"] * ROWS
    code, out, monitor = init("price", {"response_code": codes, "output_format": formats})
    assert code == DONE, out
    assert monitor["problem"] == "regression"
    assert "scores" not in monitor


@pytest.mark.parametrize(
    ("said", "problem"), [(["paid", "default"], "classification"), (["paid", "paid"], "regression")]
)
def test_one_number_is_a_guessed_score_where_answers_have_two_values(said: list[str], problem: str) -> None:
    log = Log(pa.table({"decision": said, "x": [1.0, 2.0]}), 2)
    world, fit = SimpleNamespace(log=log), Fit((), ("x",))
    (found,) = _of_one(world, "Gemm", fit)  # type: ignore[arg-type]
    assert (found[0].value, found[0].guessed) == (problem, problem == "classification")
    (regression,) = _of_one(world, "TreeEnsembleRegressor", fit)  # type: ignore[arg-type]
    assert regression[0].value == "regression"


@pytest.mark.parametrize(("model", "answer"), [("codes", CODES), ("price", 10.0 * VALUES[:, 0] + 50)])
def test_what_the_comments_propose_can_watch_the_model(init: Written, tmp_path: Path, model: str, answer: Any) -> None:
    init(model, {"prediction": answer})
    path = tmp_path / "opmon.yaml"
    text = path.read_text().replace("    #   - {", "      - {")
    for key in ("rules", "measures", "main", "unit"):
        text = text.replace(f"    # {key}:", f"    {key}:")
    path.write_text(text)
    assert [len(monitor.rules) for monitor in load(path).monitors.values()] == [1]


def test_three_numbers_for_each_input_are_refused_in_words(init: Written, tmp_path: Path) -> None:
    code, out, _ = init("three", {})
    assert code == WRONG
    assert "the model gives 3 numbers for each input (variable), and a monitor watches one" in out
    assert "Traceback" not in out


def test_a_file_that_is_there_stays(init: Written, tmp_path: Path) -> None:
    (tmp_path / "opmon.yaml").write_text("monitors: {}\n")
    code, out, _ = init("codes", {})
    assert (code, "--force" in out) == (WRONG, True)
    assert (tmp_path / "opmon.yaml").read_text() == "monitors: {}\n"


def test_init_asks_for_both(tmp_path: Path) -> None:
    code, _, err = opmon("init", str(tmp_path / "x.yaml"), "--from", "models:/codes/1")
    assert (code, "--source" in err) == (WRONG, True)

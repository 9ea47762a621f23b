"""The registry against a real MLflow, by its database and by its server."""

from __future__ import annotations

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from opmon.abc import Dataset
from opmon.errors import InputError, ModelError, NotFoundError, UnavailableError
from opmon.registry import MlflowRegistry
from opmon.registry._datasets import dataset_inputs
from opmon.scoring.conversion.converting import convert
from opmon.scoring.graph.file import class_names, read_model
from opmon.testing import check_registry
from opmon.types import ModelVersion

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def experiment(registry) -> str:
    return registry.experiment(f"opmon/{uuid.uuid4().hex}")


@pytest.fixture
def run(registry, experiment) -> str:
    return registry.run(experiment, "round/1", "round 1")


def test_registry_keeps_the_contract(registry, tmp_path) -> None:
    check_registry(registry, "models:/digits@champion", tmp_path)


def test_registry_check_tells_what_answered(registry, uri) -> None:
    assert registry.check().startswith(f"MLflow at {uri} answers: ")


@pytest.mark.parametrize(
    ("address", "version", "flavor"),
    [
        ("models:/digits@champion", "2", "onnx"),
        ("models:/digits@first", "1", "sklearn"),
        ("models:/digits/1", "1", "sklearn"),
        ("models:/digits/latest", "3", "onnx"),
    ],
)
def test_registry_resolves(registry, address, version, flavor) -> None:
    model = registry.resolve(address)
    assert (model.name, model.version, model.uri) == ("digits", version, f"models:/digits/{version}")
    assert flavor in model.flavors
    assert model.run_id is not None
    assert model.model_id.startswith("m-")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("models:/digits@prod", r"Versions of 'digits': 3, 2, 1; aliases: .*champion \(version 2\)"),
        ("models:/digits/9", r"Versions of 'digits': 3, 2, 1"),
        ("models:/digits/Production", r"Versions of 'digits'"),
        ("models:/digts/1", r"no model 'digts'; it has: .*digits.*. Did you mean 'digits'"),
        ("models:/it's/latest", r"no model \"it's\""),
    ],
)
def test_registry_unknown_version_lists_what_there_is(registry, address, message) -> None:
    with pytest.raises(NotFoundError, match=message):
        registry.resolve(address)


@pytest.mark.parametrize(
    "address", ["digits", "models:/digits", "models:/a/b/c", "runs:/abc/model", "models:/m-123", ""]
)
def test_registry_what_is_no_address_is_told(registry, address) -> None:
    with pytest.raises(InputError, match="models:/name@alias"):
        registry.resolve(address)


@pytest.mark.parametrize("version", ["2", "3"])
def test_registry_fetches_onnx_once(registry, tmp_path, model, version) -> None:
    images, _ = load_digits(return_X_y=True)
    path = registry.fetch_onnx(registry.resolve(f"models:/digits/{version}"), tmp_path)
    labels, _ = onnxruntime.InferenceSession(str(path)).run(None, {"X": images[:50].astype(np.float32)})
    assert labels.tolist() == model.predict(images[:50]).tolist()
    written = path.stat().st_mtime_ns
    again = MlflowRegistry(registry.address).fetch_onnx(registry.resolve(f"models:/digits/{version}"), tmp_path)
    assert (again, again.stat().st_mtime_ns) == (path, written)
    assert [item.name for item in (tmp_path / "digits").iterdir()] == [path.parent.name]


def test_registry_converts_scikit_learn_only_when_asked(registry, tmp_path, model) -> None:
    images, _ = load_digits(return_X_y=True)
    version = registry.resolve("models:/digits@first")
    with pytest.raises(ModelError, match=r"has: python_function, sklearn.*convert_sklearn: true"):
        registry.fetch_onnx(version, tmp_path, convert)
    assert list(tmp_path.iterdir()) == []
    path = registry.fetch_onnx(version, tmp_path, convert, trusted=True)
    labels, scores = onnxruntime.InferenceSession(str(path)).run(None, {"X": images[:50]})
    assert labels.tolist() == model.predict(images[:50]).tolist()
    assert scores.shape == (50, 10)
    assert class_names(read_model(path)) == tuple("0123456789")


def test_registry_fetch_from_many_threads_gives_one_whole_file(registry, tmp_path) -> None:
    version = registry.resolve("models:/digits@champion")
    with ThreadPoolExecutor(6) as pool:
        paths = list(pool.map(lambda _: registry.fetch_onnx(version, tmp_path), range(6)))
    assert len(set(paths)) == 1
    assert read_model(paths[0]).graph.output


def test_registry_signature(registry) -> None:
    signature = registry.signature(registry.resolve("models:/digits@first"))
    assert signature.tensors == ((None, "float64", (-1, 64)),)
    assert registry.signature(registry.resolve("models:/digits@champion")) is None


def test_registry_version_tags(registry) -> None:
    version = registry.resolve("models:/digits@champion")
    registry.tag_version(version, {"opmon.status": "degraded", "opmon.accuracy": 0.5})
    registry.tag_version(version, {"opmon.status": "healthy"})
    tags = registry.version_tags(version)
    assert (tags["opmon.status"], tags["opmon.accuracy"]) == ("healthy", "0.5")


def test_registry_cuts_what_mlflow_would_not_keep_of_a_tag(registry) -> None:
    version = registry.resolve("models:/digits@champion")
    registry.tag_version(version, {"opmon.long": "x" * 6000})
    assert registry.version_tags(version)["opmon.long"] == "x" * 5000


def test_a_dataset_names_as_many_columns_as_mlflow_keeps(tmp_path) -> None:
    fields = pa.struct([(f"field {k}", pa.float64()) for k in range(2_000)])
    table = pa.table({"wide": pa.nulls(2, fields), "plain": [1, 2]})
    path = tmp_path / "frame.parquet"
    for columns in (["plain", "wide"], ["plain"]):
        pq.write_table(table.select(columns), path)
        (found,) = dataset_inputs([Dataset("inputs", "production", path, "frame.parquet")], "run", "s3://bucket", None)
        assert [each["name"] for each in json.loads(found.dataset.schema)["mlflow_colspec"]] == ["plain"]
        assert json.loads(found.dataset.profile)["num_columns"] == len(columns)


def test_registry_experiment_is_made_once_and_restored(registry, uri) -> None:
    import mlflow

    name = f"opmon/{uuid.uuid4().hex}"
    made = registry.experiment(name)
    mlflow.MlflowClient(uri).delete_experiment(made)
    assert registry.experiment(name) == made
    assert mlflow.MlflowClient(uri).get_experiment(made).lifecycle_stage == "active"


def test_registry_experiment_asked_for_at_once_is_one(uri) -> None:
    name, barrier = f"opmon/{uuid.uuid4().hex}", threading.Barrier(6)

    def ask(_: int) -> str:
        registry = MlflowRegistry(uri)
        registry.check()
        barrier.wait()
        return registry.experiment(name)

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(ask, range(6)))) == 1


def test_registry_run_is_found_by_its_key(registry, experiment, uri) -> None:
    import mlflow

    parent = registry.run(experiment, "timeline", "v2")
    child = registry.run(experiment, "round/1", "round 1", parent=parent, tags={"opmon.round": 1})
    assert child != parent
    assert registry.run(experiment, "round/1", "another name") == child
    found = mlflow.MlflowClient(uri).get_run(child)
    assert found.data.tags["mlflow.parentRunId"] == parent
    assert found.data.tags["opmon.round"] == "1"
    assert found.info.run_name == "round 1"


def test_registry_a_run_that_is_said_to_be_new_is_the_one_that_is_there(registry, experiment, uri) -> None:
    import mlflow

    there = registry.new_run(experiment, "round/1", "round 1")
    registry.record(there, tags={"opmon.round": 1})
    later = MlflowRegistry(uri)
    assert later.new_run(experiment, "round/1", "round 1") == there, "such as that of a database that was set back"
    assert [run.info.run_id for run in mlflow.MlflowClient(uri).search_runs([experiment])] == [there]


def test_registry_run_with_a_key_that_cannot_be_searched_is_an_error(registry, experiment) -> None:
    for key in ("", "it's", "a\\b"):
        with pytest.raises(InputError, match="key"):
            registry.run(experiment, key, "name")


def test_registry_finish_run_twice(registry, run, uri) -> None:
    import mlflow

    for _ in range(2):
        registry.finish_run(run)
    assert mlflow.MlflowClient(uri).get_run(run).info.status == "FINISHED"


def test_registry_metrics_logged_again_are_not_doubled(registry, run) -> None:
    version = registry.resolve("models:/digits@champion")
    for _ in range(2):
        for step in (2, 1):
            at = NOW + timedelta(hours=step)
            values = {"accuracy/low": 0.5 + step, "a": None, "b": float("nan"), "c": float("inf"), "n": np.float32(2)}
            registry.log_metrics(run, values, step, at, version)
    assert registry.metric_history(run, "accuracy/low") == [
        (1, NOW + timedelta(hours=1), 1.5),
        (2, NOW + timedelta(hours=2), 2.5),
    ]
    assert [len(registry.metric_history(run, key)) for key in ("a", "b", "c", "n")] == [0, 0, 0, 2]


def test_registry_metrics_are_attached_to_the_logged_model(registry, run, uri) -> None:
    import mlflow

    version = registry.resolve("models:/digits/3")
    registry.log_metrics(run, {"accuracy/estimate": 0.75}, 1, NOW, version)
    metrics = mlflow.MlflowClient(uri).get_logged_model(version.model_id).metrics
    assert 0.75 in [metric.value for metric in metrics if metric.key == "accuracy/estimate"]


def test_registry_metrics_of_a_logged_model_that_is_gone_are_kept(registry, run) -> None:
    gone = ModelVersion("digits", "1", ("onnx",), model_id="m-" + "0" * 32)
    registry.log_metrics(run, {"accuracy/estimate": 0.9}, 1, NOW, model=gone)
    assert [value for _, _, value in registry.metric_history(run, "accuracy/estimate")] == [0.9]


def test_registry_many_metrics(registry, run) -> None:
    registry.log_metrics(run, {f"m{i}": i for i in range(1500)}, 0, NOW)
    assert registry.metric_history(run, "m1499") == [(0, NOW, 1499.0)]


@pytest.mark.parametrize("key", ["", "a:b", "a(b)", "/a", "a//b", "../a", "a/../b", "x" * 251, "a\nb", "a=b"])
def test_registry_metric_names_that_mlflow_refuses_are_told_before(registry, run, key) -> None:
    with pytest.raises(InputError, match="metric's name"):
        registry.log_metrics(run, {key: 1.0}, 1, NOW)


def test_registry_moment_without_a_zone_is_an_error(registry, run) -> None:
    with pytest.raises(InputError, match="time zone"):
        registry.log_metrics(run, {"a": 1.0}, 1, NOW.replace(tzinfo=None))


def test_registry_params_keep_their_first_value(registry, run) -> None:
    params = {"sampler": "sups", "budget": 40, "long": "x" * 10_000, **{f"p{i}": i for i in range(150)}}
    registry.log_params(run, params)
    registry.log_params(run, params)
    registry.log_params(run, {"budget": 41, "new": 1})
    found = registry._client.get_run(run).data.params
    assert (found["budget"], found["new"]) == ("40", "1")


def test_registry_run_tags(registry, run, uri) -> None:
    import mlflow

    registry.tag_run(run, {"opmon.state": "closed", "n": 3})
    assert mlflow.MlflowClient(uri).get_run(run).data.tags["n"] == "3"


def test_registry_artifacts_there_and_back(registry, run, tmp_path) -> None:
    folder = tmp_path / "out"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "deep" / "b.txt").write_text("b")
    registry.log_artifacts(run, folder, "all")
    registry.log_artifact(run, folder / "a.txt")
    registry.log_artifact(run, folder / "a.txt")
    assert registry.download(run, "all/deep/b.txt", tmp_path / "in").read_text() == "b"
    assert registry.download(run, "a.txt", tmp_path / "in").read_text() == "a"
    assert (registry.download(run, "all", tmp_path / "in") / "deep" / "b.txt").read_text() == "b"


def test_registry_artifact_that_is_not_there(registry, run, tmp_path) -> None:
    with pytest.raises(NotFoundError, match=r"gone\.txt"):
        registry.download(run, "gone.txt", tmp_path)
    with pytest.raises(InputError, match="no file"):
        registry.log_artifact(run, tmp_path / "gone.txt")
    for path in ("../a", "/etc/passwd"):
        with pytest.raises(InputError, match="inside its run"):
            registry.download(run, path, tmp_path)


def test_registry_unknown_run_is_not_found(registry, tmp_path) -> None:
    unknown = uuid.uuid4().hex
    for call in (
        lambda: registry.log_metrics(unknown, {"a": 1.0}, 1, NOW),
        lambda: registry.tag_run(unknown, {"a": 1}),
        lambda: registry.finish_run(unknown),
        lambda: registry.download(unknown, "a", tmp_path),
    ):
        with pytest.raises(NotFoundError, match=unknown):
            call()


def test_registry_from_several_threads(registry, experiment) -> None:
    def work(i: int) -> int:
        run = registry.run(experiment, f"round/{i}", f"round {i}")
        for step in range(5):
            registry.log_metrics(run, {"a": step}, step, NOW)
        return len(registry.metric_history(run, "a"))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [5] * 8


def test_registry_leaves_mlflows_global_state_alone(registry, experiment, run) -> None:
    import mlflow

    before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
    registry.log_metrics(run, {"a": 1.0}, 1, NOW)
    registry.resolve("models:/digits@champion")
    assert (mlflow.get_tracking_uri(), mlflow.get_registry_uri()) == before
    assert mlflow.active_run() is None


def test_registry_version_whose_files_are_gone_is_a_model_error(registry, uri, tmp_path) -> None:
    import mlflow

    client = mlflow.MlflowClient(uri)
    name = f"lost-{uuid.uuid4().hex}"
    run = client.create_run(registry.experiment("opmon/lost")).info
    client.create_registered_model(name)
    client.create_model_version(name, f"{run.artifact_uri}/model", run.run_id)
    bare = registry.resolve(f"models:/{name}/1")
    assert bare.flavors == (), "a remote API, say: what production logged can be judged"
    with pytest.raises(ModelError, match=r"has no files of a model\. Judge what production logged"):
        registry.fetch_onnx(bare, tmp_path / "cache")
    (tmp_path / "MLmodel").write_text("flavors: [broken")
    client.log_artifact(run.run_id, str(tmp_path / "MLmodel"), "model")
    with pytest.raises(ModelError, match="no readable MLmodel file"):
        registry.resolve(f"models:/{name}/1")
    (tmp_path / "MLmodel").write_text("flavors: {onnx: {data: ../../secret.onnx}}")
    client.log_artifact(run.run_id, str(tmp_path / "MLmodel"), "model")
    with pytest.raises(ModelError, match="outside of the model"):
        registry.fetch_onnx(registry.resolve(f"models:/{name}/1"), tmp_path / "models")


@pytest.mark.filterwarnings("ignore")
def test_registry_model_that_is_deleted_and_registered_anew_is_another(sqlite_uri, tmp_path) -> None:
    """Also of files that were saved and not logged, which have neither a run nor an id."""
    import mlflow

    client, registry, rows = mlflow.MlflowClient(sqlite_uri), MlflowRegistry(sqlite_uri), np.eye(2).repeat(9, axis=0)
    versions, files = [], []
    for turn, truth in enumerate((rows[:, 0] > 0, rows[:, 0] <= 0)):
        fitted = LogisticRegression().fit(rows, truth)
        for name, flavor, model in (
            ("saved-onnx", mlflow.onnx, to_onnx(fitted, rows[:1], options={"zipmap": False})),
            ("saved-sklearn", mlflow.sklearn, fitted),
        ):
            flavor.save_model(model, tmp_path / name / str(turn), pip_requirements=["onnx"])
            client.create_registered_model(name)
            client.create_model_version(name, str(tmp_path / name / str(turn)))
            version = registry.resolve(f"models:/{name}/1")
            path = registry.fetch_onnx(version, tmp_path, convert, trusted=True)
            assert onnxruntime.InferenceSession(str(path)).run(None, {"X": rows})[0].tolist() == truth.tolist()
            assert MlflowRegistry(sqlite_uri).fetch_onnx(registry.resolve(version.uri), tmp_path, convert, True) == path
            versions.append(version)
            files.append(path)
        assert registry.original(version, tmp_path, trusted=True).predict(rows).tolist() == truth.tolist()
        client.delete_registered_model("saved-onnx")
        client.delete_registered_model("saved-sklearn")
    assert len(set(versions)) == len(set(files)) == 4


def test_registry_folder_that_cannot_be_written_is_told(registry, tmp_path) -> None:
    (tmp_path / "models").write_text("not a folder")
    with pytest.raises(UnavailableError, match="cannot be kept in"):
        registry.fetch_onnx(registry.resolve("models:/digits@champion"), tmp_path / "models")


def test_registry_prints_no_address_with_a_password(server, monkeypatch, capfd) -> None:
    """MLflow tells the address of a run that ends, and by default with everything in it."""
    monkeypatch.setenv("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "false")
    known = MlflowRegistry(server.uri.replace("://", "://ann:s3cret@"))
    run = known.run(known.experiment("with a password"), "m/round/1", "round 1")
    known.finish_run(run)
    assert capfd.readouterr() == ("", "")

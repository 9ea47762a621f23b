"""A retraining job gets the failures of production, with what they stand for."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opmon
from opmon.errors import InputError, NotFoundError
from opmon.registry import MlflowRegistry, tracking
from tests.patience import LONGEST


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two rounds of one monitor, labelled, in which the model is wrong now and then."""
    from tests.conftest import Workbench, new_digits
    from tests.made_once import new_opmon_database

    folder = tmp_path_factory.mktemp("retraining")
    bench = Workbench(folder, new_digits(folder), "retrained", "models:/digits@champion")
    monitor = bench.monitor(new_opmon_database(folder / "opmon.db"))
    for _ in range(2):
        bench.write_window()
        monitor.advance()
        bench.answer(monitor, wrong=0.3)
        assert monitor.advance().closed == 1
    return bench


def test_failures_come_with_inputs_truth_and_weights(known: Any) -> None:
    found = opmon.load_failures("models:/digits@champion", tracking_uri=known.tracking_uri)
    assert len(found) > 5
    assert (found["truth"] != found["prediction"]).all()
    assert set(found["round"]) == {1, 2}
    assert set(found["model_version"]) == {"1"}
    assert np.stack(found["pixels"]).shape == (len(found), 64), "what production logged, as it logged it"
    assert (found["weight"] > 0).all()
    assert found["time"].between(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)).all()
    by_version = opmon.load_failures("models:/digits/1", tracking_uri=known.tracking_uri)
    by_monitor = opmon.load_failures("retrained", tracking_uri=known.tracking_uri)
    assert list(by_version["input_id"]) == list(by_monitor["input_id"]) == list(found["input_id"])


def test_rounds_and_moments_are_chosen(known: Any) -> None:
    def rounds_of(**chosen: Any) -> set[int]:
        return set(opmon.load_failures("retrained", tracking_uri=known.tracking_uri, **chosen)["round"])

    assert rounds_of(rounds=1) == {2}
    assert rounds_of(rounds=[1]) == {1}
    assert rounds_of(rounds=5) == {1, 2}
    assert rounds_of(since=date(2026, 3, 1)) == rounds_of(since="2026-03-01T00:00") == {1, 2}
    assert rounds_of(since=datetime(2026, 3, 1, 2, 0, tzinfo=UTC)) == {2}
    assert rounds_of(since="2030-01-01") == set()


def test_all_rounds_are_found_however_many_mlflow_gives_at_once(known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = MlflowRegistry(known.tracking_uri)
    registry.experiment("opmon/zeros")
    monkeypatch.setattr(tracking, "_PAGE", 1)
    for what in ("retrained", "models:/digits/1"):
        assert set(opmon.load_failures(what, registry=registry)["round"]) == {1, 2}
        assert set(opmon.load_failures(what, registry=registry, rounds=[1])["round"]) == {1}


def test_the_weights_stand_for_the_round(known: Any) -> None:
    """Together they are an estimate of how many inputs the model is wrong on: here within the noise of the design."""
    found = opmon.load_failures("retrained", tracking_uri=known.tracking_uri)
    assert 10 < found["weight"].sum() < 2 * 200


def test_what_is_not_there_is_told(known: Any) -> None:
    with pytest.raises(NotFoundError, match=r"there is no round of 'other'.*give the name of a monitor"):
        opmon.load_failures("other", tracking_uri=known.tracking_uri)
    with pytest.raises(InputError, match="since is a date such as"):
        opmon.load_failures("retrained", since="lately", tracking_uri=known.tracking_uri)
    with pytest.raises(InputError, match="rounds is how many"):
        opmon.load_failures("retrained", rounds=0, tracking_uri=known.tracking_uri)
    with pytest.raises(NotFoundError, match="there is no run of round 3, 7 in the registry"):
        opmon.load_failures("retrained", rounds=[7, 1, 3], tracking_uri=known.tracking_uri)
    with pytest.raises(NotFoundError, match="models:/digits/99"):
        opmon.load_failures("models:/digits/99", tracking_uri=known.tracking_uri)


def test_mlflow_shows_the_failures_as_a_dataset_that_can_be_opened(known: Any, tmp_path: Path) -> None:
    import mlflow
    import pyarrow.parquet as pq

    client = mlflow.MlflowClient(known.tracking_uri)
    experiment = client.get_experiment_by_name("opmon/retrained")
    run = client.search_runs([experiment.experiment_id], "tags.`opmon.round` = '2'")[0]
    datasets = {each.tags[0].value: each for each in run.inputs.dataset_inputs}
    assert set(datasets) == {"production", "failures"}
    schema = mlflow.types.Schema.from_json(
        __import__("json").dumps(__import__("json").loads(datasets["failures"].dataset.schema)["mlflow_colspec"])
    )
    assert {"input_id", "truth", "weight", "pixels"} <= set(schema.input_names())
    source = mlflow.data.get_source(datasets["failures"])
    failures = pq.read_table(source.load(str(tmp_path)))
    assert sorted(failures["input_id"].to_pylist()) == sorted(
        opmon.load_failures("retrained", rounds=[2], tracking_uri=known.tracking_uri)["input_id"]
    )


def test_the_example_of_the_documentation_runs(known: Any, tmp_path: Path) -> None:
    """It is a file that anybody can start; here it retrains on digits and registers a new version."""
    import re
    import subprocess
    import sys

    text = (Path(opmon.__file__).parent / "docs" / "mlflow.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(# retrain\.py\n.*?)```", text, re.DOTALL)
    script = tmp_path / "retrain.py"
    script.write_text(code)
    import os

    environment = os.environ | {"MLFLOW_TRACKING_URI": known.tracking_uri, "MLFLOW_DISABLE_TELEMETRY": "true"}
    done = subprocess.run(
        [sys.executable, str(script), "models:/digits@champion"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "failures of production" in done.stdout
    assert "version 2" in done.stdout

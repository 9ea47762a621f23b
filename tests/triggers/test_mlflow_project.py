from __future__ import annotations

import time
from pathlib import Path

import pytest

from opmon.abc import Action
from opmon.errors import InputError, OpmonError
from opmon.registry import MlflowRegistry
from opmon.triggers.mlflow_project import MlflowProject
from tests.made_once import new_mlflow_store

SCRIPT = "import sys, pathlib; pathlib.Path(sys.argv[1]).open('a').write(' '.join(sys.argv[2:]) + chr(10))"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "MLproject").write_text(
        "name: retrain\nentry_points:\n  main:\n    parameters:\n"
        "      out: {type: string}\n      failures: {type: string}\n"
        '    command: "python train.py {out} {failures}"\n'
    )
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> MlflowRegistry:
    return MlflowRegistry(new_mlflow_store(tmp_path))


def test_an_alarm_starts_the_project_once(project: Path, registry: MlflowRegistry, event, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    parameters = {"out": str(out), "failures": "{failures_uri}"}
    action = MlflowProject(str(project), parameters=parameters).bind(registry)
    assert isinstance(action, Action)
    known = {**event, "failures_uri": "runs:/abc/failures"}
    action.act(known)
    action.act(known)
    for _ in range(600):
        if out.exists() and out.read_text():
            break
        time.sleep(0.1)
    time.sleep(1.0)
    assert out.read_text().split() == ["runs:/abc/failures"]
    client = registry._client
    runs = client.search_runs([client.get_experiment_by_name("opmon/retraining").experiment_id])
    assert len(runs) == 1


def test_a_project_that_is_not_there_is_tried_again(
    registry: MlflowRegistry, event, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("opmon.registry.projects.GRACE", 60.0)
    with pytest.raises(OpmonError, match="ended with exit code"):
        MlflowProject(str(tmp_path / "nothing")).bind(registry).act(event)


def test_a_recovery_starts_nothing(registry: MlflowRegistry, event) -> None:
    MlflowProject("/nowhere").bind(registry).act({**event, "type": "opmon.recovered"})


def test_unknown_words_in_parameters_are_told() -> None:
    with pytest.raises(InputError, match=r"unknown \{modell\}"):
        MlflowProject("p", parameters={"x": "{modell}"})

"""A model that MLflow's scoring server serves records what it is asked."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import mlflow.pyfunc
import numpy as np
import pytest
from fastapi.testclient import TestClient
from mlflow.pyfunc import scoring_server

from opmon.errors import InputError
from opmon.recorder import pyfunc
from opmon.recorder.pyfunc import Recorded


class Doubling(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
        return np.asarray(model_input["x"]) * 2


def test_the_scoring_server_answers_as_before_and_records(tmp_path: Path, left: Any) -> None:
    inner, outer = str(tmp_path / "inner"), str(tmp_path / "outer")
    mlflow.pyfunc.save_model(inner, python_model=Doubling(), pip_requirements=[])
    recorded = Recorded(str(left.folder), model_version=3)
    mlflow.pyfunc.save_model(outer, python_model=recorded, artifacts={"model": inner}, pip_requirements=[])

    model = mlflow.pyfunc.load_model(outer)
    client = TestClient(scoring_server.init(model))
    answer = client.post(
        "/invocations", json={"dataframe_split": {"columns": ["x", "y"], "data": [[1, "a"], [2, "b"]]}}
    )
    assert answer.json() == {"predictions": [2, 4]}
    client.post("/invocations", json={"dataframe_records": [{"x": 5.5, "y": "c"}]})
    model.unwrap_python_model().recorder.close()

    assert left.table().select(["x", "y", "prediction", "model_version"]).to_pylist() == [
        {"x": 1, "y": "a", "prediction": 2, "model_version": "3"},
        {"x": 2, "y": "b", "prediction": 4, "model_version": "3"},
        {"x": 5.5, "y": "c", "prediction": 11.0, "model_version": "3"},
    ]


def test_wrong_options_are_told_where_it_is_logged() -> None:
    with pytest.raises(InputError, match="rows_per_file"):
        Recorded("inputs", rows_per_file=0)


def test_it_is_logged_by_name_and_carries_no_recorder() -> None:
    again = pickle.loads(pickle.dumps(Recorded("inputs")))
    assert type(again) is pyfunc.Recorded
    with pytest.raises(RuntimeError, match="not loaded"):
        _ = again.recorder

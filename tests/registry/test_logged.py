"""What production logged is read from a real server as from a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mlflow import MlflowClient

from opmon.errors import RegistryUnavailable
from opmon.sources.mlflow.mlflow import Mlflow
from opmon.testing.sources import check_source


def test_the_source_keeps_its_promises_over_a_server(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    client = MlflowClient(server.uri)
    number = client.create_experiment("logged inputs")
    for hour in range(2):
        run = client.create_run(number).info.run_id
        pq.write_table(pa.table({"id": range(15 * hour, 15 * hour + 15)}), tmp_path / "inputs.parquet")
        client.log_artifact(run, str(tmp_path / "inputs.parquet"), "batches/a")
        client.set_terminated(run, end_time=(hour + 1) * 1000)
    source = Mlflow("logged inputs", artifacts="batches/**", tracking_uri=server.uri)
    check_source(source, pa.table({"id": range(30)}))


def test_a_server_that_is_not_there_is_told(free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    source = Mlflow("logged inputs", tracking_uri=f"http://u:hunter2@127.0.0.1:{free_port}")
    with pytest.raises(RegistryUnavailable, match="Nothing is lost") as caught:
        source.pending({})
    assert "hunter2" not in str(caught.value)

"""Runs that production made, in a real MLflow store."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mlflow import MlflowClient

from opmon.errors import InputError, NotFoundError, SourceError
from opmon.sources.mlflow import mirror
from opmon.sources.mlflow.mlflow import Mlflow
from opmon.testing.sources import check_source, positions_after
from tests.made_once import new_mlflow_store

HOUR = 3_600_000
NUMBERS = itertools.count()
START = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1000)


class Runs:
    """An experiment that production logs its inputs to."""

    def __init__(self, uri: str, folder: Path, name: str) -> None:
        self.client, self.uri, self.folder, self.name = MlflowClient(uri), uri, folder, name
        self.number = self.client.create_experiment(name, artifact_location=(folder / name).as_uri())

    def begin(self, hour: int = 0, **tags: str) -> str:
        return str(self.client.create_run(self.number, start_time=START + hour * HOUR, tags=tags).info.run_id)

    def end(self, run: str, hour: int, status: str = "FINISHED") -> None:
        self.client.set_terminated(run, status, end_time=START + hour * HOUR)

    def write(self, run: str, ids: Sequence[int], name: str = "inputs.parquet") -> None:
        rows = pa.table({"id": list(ids), "x": [k / 2 for k in ids]})
        path = self.folder / name
        if name.endswith(".parquet"):
            pq.write_table(rows, path)
        else:
            path.write_text("id,x\n" + "".join(f"{k},{k / 2}\n" for k in ids))
        self.client.log_artifact(run, str(path))

    def batch(self, ids: Sequence[int], hour: int, name: str = "inputs.parquet", **tags: str) -> str:
        run = self.begin(hour, **tags)
        self.write(run, ids, name)
        self.end(run, hour)
        return run

    def source(self, **options: Any) -> Mlflow:
        return Mlflow(**{"experiment": self.name, "tracking_uri": self.uri, **options})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return new_mlflow_store(folder), folder


@pytest.fixture
def runs(store: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> Runs:
    uri, folder = store
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return Runs(uri, folder, f"experiment {next(NUMBERS)}")


def ids_of(source: Mlflow, positions: dict[str, str], limit: int | None = None) -> list[int]:
    slices = source.pending(positions, limit)
    positions_after(positions, slices)
    return [value for batch in source.read(slices) for value in batch.rows["id"].to_pylist()]


def test_it_keeps_the_promises_of_sources(runs: Runs) -> None:
    for hour in range(3):
        runs.batch(range(10 * hour, 10 * hour + 10), hour)
    expected = pa.table({"id": list(range(30)), "x": [k / 2 for k in range(30)]})
    check_source(runs.source(), expected)


def test_runs_count_once_they_have_finished_in_the_order_in_which_they_ended(runs: Runs) -> None:
    slow = runs.begin(0)
    runs.write(slow, [1, 2])
    runs.batch([3, 4], hour=2, name="more.csv")
    failed = runs.begin(0)
    runs.write(failed, [99])
    runs.end(failed, 1, "FAILED")
    source, positions = runs.source(), dict[str, str]()
    assert ids_of(source, positions) == [3, 4]
    runs.end(slow, 1)  # by a clock that is behind
    runs.batch([5], hour=3)
    assert ids_of(source, positions) == [1, 2, 5]
    assert source.pending(positions) == []


def test_tables_of_log_table_are_read(runs: Runs) -> None:
    run = runs.begin()
    runs.client.log_table(run, {"id": [1, 2], "xs": [[1.0, 2.0], [3.0]], "t": ["a\nb", None]}, "tables/eval.json")
    runs.client.log_dict(run, {"no": "table"}, "other.json")
    runs.end(run, 1)
    source = runs.source(artifacts="tables/*.json")
    (piece,) = source.pending({})
    assert piece.part.endswith("/tables/eval.json.jsonl")
    found = [row for batch in source.read([piece]) for row in batch.rows.to_pylist()]
    assert found == [{"id": 1, "xs": [1.0, 2.0], "t": "a\nb"}, {"id": 2, "xs": [3.0], "t": None}]
    with pytest.raises(SourceError, match=r"other.json of run .* is no table as mlflow.log_table writes it"):
        runs.source().pending({})
    assert len(runs.source(broken="skip").pending({})) == 1


def test_runs_that_go_on_are_read_as_far_as_they_are_when_asked(runs: Runs) -> None:
    run = runs.begin()
    runs.client.log_table(run, {"id": [1, 2]}, "inputs.json")
    source, positions = runs.source(unfinished=True), dict[str, str]()
    assert runs.source().pending({}) == []
    assert ids_of(source, positions) == [1, 2]
    runs.client.log_table(run, {"id": [3]}, "inputs.json")
    assert ids_of(source, positions) == [3]
    runs.client.log_table(run, {"id": [4]}, "inputs.json")
    runs.end(run, 30_000)
    assert ids_of(source, positions) == [4]
    assert source.pending(positions) == []


def test_a_filter_and_since_say_which_runs(runs: Runs) -> None:
    runs.batch([1], hour=1, stage="test")
    runs.batch([2], hour=2, stage="production")
    runs.batch([3], hour=3, stage="production")
    assert ids_of(runs.source(filter="tags.stage = 'production'"), {}) == [2, 3]
    source = runs.source(since="2026-03-01T03:00")
    assert ids_of(source, {}) == [1, 2, 3], "opmon check looks at what there is"
    positions = dict(source.begins())
    assert ids_of(source, positions) == [3]
    runs.batch([4], hour=4)
    assert ids_of(source, positions) == [4]
    with pytest.raises(InputError, match="Invalid comparator"):
        runs.source(filter="tags.stage ! 'x'").pending({})


def test_copies_that_are_gone_are_fetched_again(runs: Runs) -> None:
    runs.batch(range(20), hour=1)
    source = runs.source()
    slices = source.pending({}, limit=7)
    folder = source._mirror().folder
    for path in folder.rglob("*.parquet"):
        path.unlink()
    assert source.fetch(slices, {0: [6, 0]})["id"].to_pylist() == [6, 0]
    positions = positions_after({}, source.pending({}))
    long_ago = mirror._KEPT
    mirror._KEPT = -1.0
    try:
        assert source.pending(positions) == []
    finally:
        mirror._KEPT = long_ago
    assert not list(folder.rglob("*.parquet"))
    assert source.pending(positions) == []
    assert not list(folder.rglob("*.parquet")), "what was read is not fetched again"


def test_copies_that_another_process_removes_meanwhile_are_none(tmp_path: Path) -> None:
    """Monitors of one experiment share its folder, and each fetches into folders of its own there."""
    for number in range(3):
        for name in ("a.csv", "b.csv"):
            (tmp_path / str(number)).mkdir(exist_ok=True)
            (tmp_path / str(number) / name).write_text("x\n1\n")
    (tmp_path / ".fetching-x").mkdir()
    (tmp_path / ".fetching-x" / "a.csv").write_text("x\n")
    looking = mirror._files(tmp_path)
    first, _ = next(looking)
    stays = tmp_path / Path(first).parent
    for path in tmp_path.iterdir():
        if path != stays:
            shutil.rmtree(path)
    (stays / ("b.csv" if first.endswith("a.csv") else "a.csv")).unlink()
    assert list(looking) == []
    assert [part for part, _ in mirror._files(tmp_path)] == [first]


def test_what_a_limit_leaves_is_not_fetched(runs: Runs) -> None:
    for hour in range(45):
        runs.batch([hour], hour)
    source = runs.source()
    assert sum(piece.rows for piece in source.pending({}, limit=5)) == 5
    assert len(list(source._mirror().folder.rglob("*.parquet"))) == 20
    assert ids_of(source, {}) == list(range(45))


def test_what_is_not_there_or_cannot_be_meant_is_told(runs: Runs) -> None:
    with pytest.raises(NotFoundError, match="has no experiment 'nothing'; correct 'experiment' of"):
        Mlflow("nothing", tracking_uri=runs.uri).pending({})
    for options, said in (({"experiment": " "}, "experiment is empty"), ({"broken": "no"}, "one of stop, skip")):
        with pytest.raises(InputError, match=said):
            runs.source(**options)
    assert "hunter2" not in repr(Mlflow("e", tracking_uri="http://u:hunter2@mlflow"))


def test_a_folder_of_somebody_else_is_refused(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(SourceError, match="belongs to somebody else"):
        runs.source().pending({})

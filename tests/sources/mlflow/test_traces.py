"""Traces in a real MLflow store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import mlflow
import numpy as np
import pyarrow as pa
import pytest
from mlflow.entities import SpanType

from opmon.errors import InputError, SourceError
from opmon.sources.mlflow import traces
from opmon.sources.mlflow.mirrored import in_copy
from opmon.sources.mlflow.sketch import MOST
from opmon.sources.mlflow.traces import MlflowTraces
from opmon.sources.nested import Nested
from opmon.testing.sources import check_source, positions_after
from opmon.types import Slice
from tests.made_once import new_mlflow_store

SECOND = 1_000_000_000
START = 1_772_323_200 * SECOND  # 2026-03-01


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    before = mlflow.get_tracking_uri()
    address = new_mlflow_store(tmp_path)
    mlflow.set_tracking_uri(address)
    mlflow.set_experiment("requests")
    yield address
    mlflow.set_tracking_uri(before)


def log(request: object, ended: float, took: float = 1.0) -> str:
    """A trace of a request that ended so many seconds after START."""
    span = mlflow.start_span_no_context(
        "predict", span_type=SpanType.CHAIN, inputs={"x": request}, start_time_ns=START + int((ended - took) * SECOND)
    )
    span.end(outputs={"y": 1}, end_time_ns=START + int(ended * SECOND))
    mlflow.flush_trace_async_logging()
    return str(span.trace_id)


def test_it_keeps_the_promises_of_sources(uri: str) -> None:
    ids = [log({"age": k}, 60.0 * k) for k in range(20)]
    source = MlflowTraces("requests", uri)
    check_source(source, pa.table({"id": ids, "response": ['{"y": 1}'] * 20}), ordered=False)
    nested = Nested(source, ("request.x.age",))
    found = [k for batch in nested.read(nested.pending({})) for k in batch.rows["request.x.age"].to_pylist()]
    assert found == list(range(20))


def test_slow_and_late_traces_are_read_once(uri: str) -> None:
    first = log(1, 100)
    source, positions = MlflowTraces("requests", uri), dict[str, str]()
    slices = source.pending(positions)
    positions = positions_after(positions, slices)
    slow, late = log(2, 400, took=350), log(3, 101)
    new = source.pending(positions)
    found = [key for batch in source.read(new) for key in batch.rows["id"].to_pylist()]
    assert sorted(found) == sorted([slow, late])
    positions = positions_after(positions, new)
    assert source.pending(positions) == []
    for path in source._mirror().folder.rglob("*.jsonl"):
        path.unlink()
    assert [key for batch in source.read(new) for key in batch.rows["id"].to_pylist()] == found
    assert first not in found


def elsewhere(source: MlflowTraces) -> None:
    """What is next is done on a machine without any copies."""
    shutil.rmtree(source._mirror().folder)


def ids_of(source: MlflowTraces, slices: Sequence[Slice]) -> list[str]:
    return [key for batch in source.read(slices) for key in batch.rows["id"].to_pylist()]


def test_late_traces_of_a_window_that_another_machine_read_are_read_once(uri: str) -> None:
    source, positions = MlflowTraces("requests", uri), dict[str, str]()
    first = [log(k, 100 + k / 10) for k in range(12)]
    slices = source.pending(positions)
    positions = positions_after(positions, slices)
    late = [log("late", 100.55), log("later", 99)]
    elsewhere(source)
    new = source.pending(positions)
    assert sorted(ids_of(source, new)) == sorted(late)
    assert ids_of(source, slices) == first
    positions = positions_after(positions, new)
    elsewhere(source)
    assert source.pending(positions) == []
    elsewhere(source)
    assert sorted(ids_of(source, [*slices, *new])) == sorted([*first, *late])


def test_a_window_that_was_cut_goes_on_on_another_machine(uri: str) -> None:
    source, positions = MlflowTraces("requests", uri), dict[str, str]()
    first = [log(k, 100 + k / 10) for k in range(12)]
    (cut,) = source.pending(positions, limit=7)
    positions = positions_after(positions, [cut])
    late = log("late", 100.25)
    elsewhere(source)
    assert source.fetch([cut], {0: [6, 2]})["id"].to_pylist() == [first[6], first[2]]
    elsewhere(source)
    rest = source.pending(positions)
    assert sorted(ids_of(source, rest)) == sorted([*first[7:], late])
    elsewhere(source)
    positions = positions_after(positions, rest)
    assert source.pending(positions) == []
    assert ids_of(source, [cut]) == first[:7]
    texts = [text for piece in (cut, *rest) for text in (piece.start, piece.stop)]
    assert max(map(len, texts)) <= 200, "longer ones the database does not take"


def test_more_late_traces_than_can_be_told_are_told_of(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    source, positions = MlflowTraces("requests", uri), dict[str, str]()
    log("first", 100)
    positions = positions_after(positions, source.pending(positions))
    for k in range(MOST + 1):
        log(k, 101 + k)
    elsewhere(source)
    assert source.pending(positions) == []
    assert "what came late is not read: it is more than 8" in caplog.text


def test_positions_of_earlier_releases_are_understood(uri: str) -> None:
    source = MlflowTraces("requests", uri)
    first = [log(k, 100 + k / 10) for k in range(6)]
    (cut,) = source.pending({}, limit=4)
    before = {cut.part: in_copy(cut.stop)}
    old = replace(cut, stop=in_copy(cut.stop))
    elsewhere(source)
    assert ids_of(source, [old]) == first[:4]
    (rest,) = source.pending(before)
    assert (rest.start, ids_of(source, [rest])) == (old.stop, first[4:])
    elsewhere(source)
    assert source.pending({rest.part: in_copy(rest.stop)}) == []


def test_arrays_that_were_cut_short_are_inputs_with_nothing_in_them(uri: str) -> None:
    log(np.zeros(5000), 1)
    log("wait ... what?", 2)
    log([1.5, 2.5], 3)
    source = MlflowTraces("requests", uri)
    requests = [text for batch in source.read(source.pending({})) for text in batch.rows["request"].to_pylist()]
    assert requests == [None, '{"x": "wait ... what?"}', '{"x": [1.5, 2.5]}']


def test_windows_that_are_not_over_and_those_before_since_are_left_out(uri: str) -> None:
    log(1, 100)
    kept = log(2, 1000)
    source = MlflowTraces("requests", uri, since="2026-03-01T00:10")
    assert len(source.pending({})) == 2, "opmon check looks at what there is"
    slices = source.pending(source.begins())
    assert [key for batch in source.read(slices) for key in batch.rows["id"].to_pylist()] == [kept]
    assert MlflowTraces("requests", uri, settle="3650d").pending({}) == []


def test_what_cannot_be_meant_is_refused(uri: str) -> None:
    with pytest.raises(InputError, match="experiment is empty"):
        MlflowTraces(" ", uri)
    with pytest.raises(SourceError, match="is no window of traces"):
        MlflowTraces("requests", uri).pending({"a.parquet": "0"})
    assert traces._CUT_SHORT.search('"   a b\\n0  1 2\\n..\\n\\n...  [5000 rows x 2 columns]"')

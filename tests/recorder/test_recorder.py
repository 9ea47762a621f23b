"""What is recorded is what is read, and what is not written is counted."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from pyarrow.fs import LocalFileSystem
from pydantic import BaseModel

import opmon
from opmon.errors import InputError
from opmon.recorder import _place


def test_a_record_by_column(recorder: opmon.Recorder, left: Any) -> None:
    at = datetime(2026, 11, 3, 12, 0, 0, 250, tzinfo=UTC)
    recorder.record({"age": 41, "tags": ["a"], "more": {"x": 1.5}}, "good", [0.9, 0.1], "key", at, 3)
    recorder.close()

    assert left.table().to_pylist() == [
        {
            "id": "key",
            "timestamp": at,
            "age": 41,
            "tags": ["a"],
            "more": {"x": 1.5},
            "prediction": "good",
            "scores": [0.9, 0.1],
            "model_version": "3",
            "inclusion": 1.0,
        }
    ]


def test_ids_are_made_and_sort_by_time(recorder: opmon.Recorder, left: Any) -> None:
    keys = [recorder.record([float(number)]) for number in range(100)]
    recorder.close()

    assert left.table()["id"].to_pylist() == keys
    assert len(set(keys)) == 100
    assert {UUID(key).version for key in keys} == {7}
    milliseconds = [UUID(key).int >> 80 for key in keys]
    assert milliseconds == sorted(milliseconds)


@dataclasses.dataclass
class Point:
    x: float
    y: float


class Body(BaseModel):
    x: float
    y: float


@pytest.mark.parametrize(
    ("given", "column", "value"),
    [
        ([1.0, 2.0], "features", [1.0, 2.0]),
        ((1, 2), "features", [1, 2]),
        ([1, 2.5], "features", [1.0, 2.5]),
        ([1.0, None], "features", [1.0, None]),
        (np.array([1, 2], np.float32), "features", [1.0, 2.0]),
        (np.array([[1, 2], [3, 4]], ">i2"), "features", [[1, 2], [3, 4]]),
        (np.arange(8).reshape(2, 2, 2).T, "features", [[[0, 4], [2, 6]], [[1, 5], [3, 7]]]),
        (np.array([True, False]), "features", [True, False]),
        (np.array(["a", "b"]), "features", ["a", "b"]),
        (np.array([1.5, 2.5], np.float16), "features", [1.5, 2.5]),
        ([[1, 2], [3]], "features", [[1, 2], [3]]),
        ("words", "text", "words"),
        (b"\x89PNG", "image", b"\x89PNG"),
        (bytearray(b"x"), "image", b"x"),
        (np.float32(2.5), "input", 2.5),
        (pd.Series({"x": 1.5, "y": "b"}), "x", 1.5),
        (pd.DataFrame({"x": [1.5]}), "x", 1.5),
        (Point(1, 2), "y", 2),
        (Body(x=1, y=2), "y", 2.0),
        ({"prediction": "theirs"}, "input_prediction", "theirs"),
        ({7: 1, "empty": {}}, "7", 1),
    ],
)
def test_kinds_of_inputs(recorder: opmon.Recorder, left: Any, given: Any, column: str, value: Any) -> None:
    recorder.record(given)
    recorder.close()

    assert left.table()[column].to_pylist() == [value]


def test_what_is_changed_after_recording_is_recorded_as_it_was(recorder: opmon.Recorder, left: Any) -> None:
    array, values, nested = np.zeros(3), [0.0, 0.0], {"a": {"b": [0.0]}}
    recorder.record({"array": array, "values": values, "nested": nested})
    array[:], values[0], nested["a"]["b"][0] = 1, 1.0, 1.0
    recorder.close()

    row = left.table().to_pylist()[0]
    assert (row["array"], row["values"], row["nested"]) == ([0, 0, 0], [0, 0], {"a": {"b": [0]}})


@pytest.mark.parametrize(
    "batch",
    [
        pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "c"]}),
        [{"x": 1.0, "y": "a"}, {"x": 2.0, "y": "b"}, {"x": 3.0, "y": "c"}],
        {"x": np.array([1.0, 2.0, 3.0]), "y": ["a", "b", "c"]},
    ],
)
def test_batches(recorder: opmon.Recorder, left: Any, batch: Any) -> None:
    keys = recorder.record_batch(batch, predictions=np.array([0, 1, 0]), scores=np.eye(3))
    recorder.close()

    table = left.table()
    assert table.select(["id", "x", "y", "prediction"]).to_pylist() == [
        {"id": keys[0], "x": 1.0, "y": "a", "prediction": 0},
        {"id": keys[1], "x": 2.0, "y": "b", "prediction": 1},
        {"id": keys[2], "x": 3.0, "y": "c", "prediction": 0},
    ]
    assert table["scores"].to_pylist() == np.eye(3).tolist()


def test_dates_and_spans_of_pandas_are_recorded(recorder: opmon.Recorder, left: Any) -> None:
    moment = pd.Timestamp("2026-03-01 12:00:00.000001", tz="Europe/Berlin")
    table = pd.DataFrame({"at": [moment, pd.NaT], "took": [pd.Timedelta("90s"), pd.NaT]})
    recorder.record_batch(table, [pd.Timestamp("2026-03-02"), pd.Timestamp("2026-03-03")])
    recorder.record({"at": moment, "took": pd.Timedelta("1h")}, pd.Timestamp("2026-03-04"))
    recorder.close()

    assert recorder.stats().dropped == {}
    at, took, prediction = (left.table()[name].to_pylist() for name in ("at", "took", "prediction"))
    assert at == [moment.to_pydatetime(), None, moment.to_pydatetime()]
    assert took == [timedelta(seconds=90), None, timedelta(hours=1)]
    assert prediction == [pd.Timestamp(f"2026-03-0{day}") for day in (2, 3, 4)]


@pytest.mark.parametrize(
    ("inputs", "predictions"),
    [
        (pd.DataFrame({"age": [1] * 20, "image": [bytes(100_000)] * 20}), None),
        (pd.DataFrame({"rows": [[[0.5] * 100] * 120] * 20}), None),
        (pd.DataFrame({"age": [1] * 20}), pd.Series([bytes(100_000)] * 20)),
    ],
    ids=["bytes", "lists", "predictions"],
)
def test_what_the_objects_of_a_table_hold_takes_room(tmp_path: Path, inputs: Any, predictions: Any) -> None:
    with opmon.Recorder(tmp_path, buffer_bytes=1_000_000) as recorder:
        recorder.record_batch(inputs, predictions)
        assert recorder.stats().dropped == {"buffer_full": 20}


def test_a_batch_with_other_answers_than_inputs_keeps_its_inputs(recorder: opmon.Recorder, left: Any) -> None:
    recorder.record_batch(np.eye(2), predictions=["only one"])
    recorder.record_batch({"x": [1, 2], "y": [1]})
    recorder.close()

    assert left.table()["features"].to_pylist() == [[1, 0], [0, 1]]
    assert recorder.stats().dropped == {"unwritable": 2}


def test_the_odd_value_of_a_column_is_a_misfit_and_costs_nothing(recorder: opmon.Recorder, left: Any) -> None:
    recorder.record({"age": "unknown", "marks": [1]}, prediction=1)
    recorder.record({"age": 41, "marks": "none"}, prediction=1)
    recorder.record({"age": 42.5, "marks": [1.5]}, prediction="b")
    recorder.flush()
    recorder.record({"age": "n/a", "marks": None}, prediction=None)  # the kind that it had most often counts
    recorder.record({"age": 43, "marks": [2]}, prediction=2)
    recorder.close()

    table = left.table().select(["age", "marks", "prediction", "misfits"]).to_pylist()
    assert table == [
        {"age": None, "marks": [1], "prediction": 1, "misfits": '{"age": "unknown"}'},
        {"age": 41, "marks": None, "prediction": 1, "misfits": '{"marks": "none"}'},
        {"age": 42.5, "marks": [1.5], "prediction": None, "misfits": '{"prediction": "b"}'},
        {"age": None, "marks": None, "prediction": None, "misfits": '{"age": "n/a"}'},
        {"age": 43, "marks": [2], "prediction": 2, "misfits": None},
    ]


@pytest.mark.parametrize(
    "odd",
    [
        2**70,
        "\ud800",
        float("nan"),
        {"a": [1, "b"]},
        [[1], 2],
        {"": 1},
        datetime(1, 1, 1, tzinfo=UTC),
        {"x": {"y": {}}},
    ],
)
def test_strange_values_lose_no_row(recorder: opmon.Recorder, left: Any, odd: Any) -> None:
    recorder.record({"value": odd})
    recorder.record({"value": {"a": [1]}})
    recorder.close()

    assert left.table().num_rows == 2
    assert recorder.stats().dropped == {}


def test_columns_without_end_become_misfits(recorder: opmon.Recorder, left: Any) -> None:
    for number in range(2100):
        recorder.record({f"key {number}": number})
    recorder.close()

    table = left.table()
    assert table.num_rows == 2100
    assert len(table.schema) < 2010
    assert table["misfits"][2099].as_py() == '{"key 2099": 2099}'


def test_what_cannot_be_written_is_counted_and_never_raised(recorder: opmon.Recorder, left: Any) -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    for value in (object(), deep, {"x": iter([])}):
        assert recorder.record(value)
    recorder.record([1.0], at="yesterday")
    recorder.record([1.0])
    recorder.close()

    assert left.counts() == (5, 1, 4)
    assert recorder.stats().dropped == {"unwritable": 4}


def test_files_end_by_rows_bytes_and_age(tmp_path: Path) -> None:
    def files(**sizes: Any) -> int:
        with opmon.Recorder(str(tmp_path), **sizes) as recorder:
            for number in range(10):
                recorder.record([float(number)] * 100)
                if sizes["seconds_per_file"] < 1:
                    while recorder.stats().waiting:
                        threading.Event().wait(0.001)
        return recorder.stats().files

    assert files(rows_per_file=10, seconds_per_file=3600) == 1
    assert files(rows_per_file=4, seconds_per_file=3600) == 3
    assert files(bytes_per_file=2500, seconds_per_file=3600) == 4
    assert files(seconds_per_file=0.001) == 10


def test_what_does_not_fit_is_dropped_and_the_next_file_says_so(left: Any) -> None:
    with opmon.Recorder(str(left.folder), buffer_rows=5, rows_per_file=5, seconds_per_file=3600) as recorder:
        with recorder.locks()[0]:  # nothing is written meanwhile
            for number in range(8):
                recorder.record([float(number)])
        recorder.flush()
        recorder.record([9.0])

    assert left.table()["features"].to_pylist() == [[0], [1], [2], [3], [4], [9]]
    assert left.counts() == (9, 6, 3)
    assert left.told()[-1]["now"]["dropped"] == {"buffer_full": 3}
    assert left.told()[-1]["closed"]


def test_counts_without_records_are_told_in_a_file_of_no_rows(left: Any) -> None:
    with opmon.Recorder(str(left.folder)) as recorder:
        recorder.record(object())

    assert [file.name.split(".", 1)[1] for file in left.files()] == ["tally.parquet"]
    assert left.counts() == (1, 0, 1)


def test_a_closed_recorder_counts_and_does_not_raise(recorder: opmon.Recorder) -> None:
    recorder.close()
    assert recorder.record([1.0])
    assert recorder.stats().dropped == {"closed": 1}
    assert recorder.close()


def test_a_decorated_function(recorder: opmon.Recorder, left: Any) -> None:
    @recorder.predictions
    def plain(inputs: Any) -> float:
        return sum(inputs)

    @recorder.predictions
    async def later(inputs: Any) -> dict[str, Any]:
        return {"prediction": "b", "scores": [0.2, 0.8], "id": "key"}

    assert plain([1.0, 2.0]) == 3.0
    with pytest.raises(StopIteration) as ended:
        later([3.0]).send(None)
    assert ended.value.value["prediction"] == "b"
    recorder.close()
    table = left.table()
    assert table["features"].to_pylist() == [[1.0, 2.0], [3.0]]
    assert table["prediction"].to_pylist() == [3.0, None]
    assert table["misfits"].to_pylist() == [None, '{"prediction": "b"}']


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"uri": ""}, "uri is empty"),
        ({"uri": "ftp://host/x"}, "s3://, gs://"),
        ({"name": "_hidden"}, "begins with a letter"),
        ({"rows_per_file": 0}, "rows_per_file must be greater than 0; got 0"),
        ({"sample": {"keep": 0}}, "at least 1; got 0"),
        ({"sample": {"keep": 5, "every": "soon"}}, "such as 30s, 15m.*got 'soon'"),
        ({"sample": {"keep": 5, "by": "luck"}}, "'confidence', or a function"),
        ({"sample": {"size": 5}}, "sample has no 'size'"),
    ],
)
def test_wrong_arguments_are_told(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        opmon.Recorder(**{"uri": "inputs"} | arguments)


def test_importing_it_brings_nothing_heavy() -> None:
    script = (
        "import sys, opmon; recorder = opmon.Recorder('nowhere'); "
        "print(sorted({'numpy', 'pandas', 'pyarrow', 'mlflow', 'sqlalchemy', 'pydantic'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert told.stdout == "[]\n", told.stderr


def test_an_object_store_gets_whole_objects(tmp_path: Path) -> None:
    store = _place.Store(LocalFileSystem(), str(tmp_path))
    store.put("object", b"bytes")
    assert (tmp_path / "object").read_bytes() == b"bytes"

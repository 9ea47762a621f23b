"""Logs of model servers: one row for each input that a request asked about, whoever logged it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import InputError, SourceError
from opmon.sources import _reading
from opmon.sources._folder import Entry
from opmon.sources._runs import held
from opmon.sources.requests.payloads import answers_of, inputs_of
from opmon.sources.requests.requests import Requests
from opmon.tables import joined
from opmon.testing import check_source

ROWS = [{"age": 30 + k, "town": "Ulm" if k % 2 else "Graz"} for k in range(40)]

REQUESTS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "split": (
        {"dataframe_split": {"columns": ["a", "b"], "data": [[1, "x"], [2, None]]}},
        [{"a": 1, "b": "x"}, {"a": 2, "b": None}],
    ),
    "split of old": ({"columns": ["a"], "data": [[1], [2]]}, [{"a": 1}, {"a": 2}]),
    "records": ({"dataframe_records": [{"a": 1}, {"a": 2}]}, [{"a": 1}, {"a": 2}]),
    "records alone": ([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 2}]),
    "instances of lists": ({"instances": [[1, 2], [3, 4]]}, [{"features": [1, 2]}, {"features": [3, 4]}]),
    "instances of objects": ({"instances": [{"x": [1, 2]}]}, [{"x": [1, 2]}]),
    "inputs by name": ({"inputs": {"a": [1, 2], "b": [[3], [4]]}}, [{"a": 1, "b": [3]}, {"a": 2, "b": [4]}]),
    "one input": ({"inputs": [1.5, 2.5]}, [{"features": [1.5, 2.5]}]),
    "pictures": ({"inputs": [[[1, 2], [3, 4]]]}, [{"features": [1, 2, 3, 4]}]),
    "V2": (
        {"inputs": [{"name": "a", "shape": [2, 2], "datatype": "FP32", "data": [[1, 2], [3, 4]]},
                    {"name": "b", "shape": [2, 1], "datatype": "BYTES", "data": ["x", "y"]}]},
        [{"a": [1, 2], "b": "x"}, {"a": [3, 4], "b": "y"}],
    ),
    "one object": ({"a": 1, "b": 2}, [{"a": 1, "b": 2}]),
    "V2 that does not fit": ({"inputs": [{"name": "a", "shape": [3], "data": [1, 2]}]}, [{}]),
    "a number": (7, [{"features": [7]}]),
}  # fmt: skip


@pytest.mark.parametrize("form", REQUESTS)
def test_inputs_of_every_form(form: str) -> None:
    request, expected = REQUESTS[form]
    assert inputs_of(json.dumps(request)) == expected


def test_inputs_that_are_no_json() -> None:
    assert inputs_of("1,2.5,3\n4,5,6\n") == [{"features": [1, 2.5, 3]}, {"features": [4, 5, 6]}]
    assert inputs_of('30,"Ulm, Donau",7') == [{"c0": 30, "c1": "Ulm, Donau", "c2": 7}]
    for text in (None, "", "  ", "[" * 100_000, "{broken"):
        assert inputs_of(text) == [{}]


ANSWERS: dict[str, tuple[Any, list[tuple[Any, Any]]]] = {
    "labels": ({"predictions": ["a", "b"]}, [("a", None), ("b", None)]),
    "scores": ({"predictions": [[0.1, 0.9], [0.8, 0.2]]}, [(None, [0.1, 0.9]), (None, [0.8, 0.2])]),
    "both": (
        {"predictions": [{"label": "a", "probabilities": [1, 0]}, {"prediction": 3, "scores": "?"}]},
        [("a", [1, 0]), (3, None)],
    ),
    "a list": ([1, 0], [(1, None), (0, None)]),
    "lists of one": ({"predictions": [[1.5], [2.5]]}, [(1.5, None), (2.5, None)]),
    "V2": (
        {"outputs": [{"name": "label", "shape": [2], "data": ["a", "b"]},
                     {"name": "probabilities", "shape": [2, 2], "data": [1, 0, 0, 1]}]},
        [("a", [1, 0]), ("b", [0, 1])],
    ),
    "too few": ({"predictions": ["a"]}, [(None, None), (None, None)]),
    "an error": ({"error_code": "BAD_REQUEST"}, [(None, None), (None, None)]),
}  # fmt: skip


@pytest.mark.parametrize("form", ANSWERS)
def test_answers_of_every_form(form: str) -> None:
    response, expected = ANSWERS[form]
    found = answers_of(json.dumps(response), 2)
    assert [(row["prediction"], row["scores"]) for row in found] == expected


def inference_table(folder: Path) -> Path:
    """Requests with one to three inputs, one that failed and one that is broken."""
    sizes, rows, start = [1, 2, 3, 1, 2, 3, 4, 4, 5, 5, 5, 5], [], 0
    for place, size in enumerate(sizes):
        some = ROWS[start : start + size]
        start += size
        rows.append((f"r{place}", 200, {"dataframe_records": some}, {"predictions": [row["age"] % 2 for row in some]}))
    rows.insert(2, ("failed", 500, {"dataframe_records": ROWS[:9]}, {"error": "down"}))
    table = {
        "databricks_request_id": [row[0] for row in rows],
        "timestamp_ms": [1_772_366_400_000 + 1000 * place for place in range(len(rows))],
        "status_code": [row[1] for row in rows],
        "request": [json.dumps(row[2]) for row in rows],
        "response": [json.dumps(row[3]) for row in rows],
        "request_metadata": pa.array([[("model_version", "3")]] * len(rows), pa.map_(pa.string(), pa.string())),
    }
    pq.write_table(pa.table(table), folder / "payload.parquet", row_group_size=5)
    return folder


def test_an_inference_table_keeps_what_sources_promise(tmp_path: Path) -> None:
    source = Requests(str(inference_table(tmp_path)))
    rows = pa.Table.from_batches([batch.rows for batch in source.read(source.pending({}))])
    assert rows["age"].to_pylist() == [row["age"] for row in ROWS]
    assert rows["prediction"].to_pylist() == [row["age"] % 2 for row in ROWS]
    assert rows["id"].to_pylist()[:4] == ["r0", "r1#0", "r1#1", "r2#0"]
    assert set(rows["model_version"].to_pylist()) == {"3"}
    assert rows["timestamp"].to_pylist()[1] == 1_772_366_401.0
    check_source(source, pa.table({"age": [row["age"] for row in ROWS], "town": [row["town"] for row in ROWS]}))


def test_what_a_gateway_captured(tmp_path: Path) -> None:
    lines = []
    for place, row in enumerate(ROWS[:20]):
        data = f"{row['age']},{place}"
        encoded = base64.b64encode(data.encode()).decode() if place % 2 else data
        side = {"data": encoded, "encoding": "BASE64" if place % 2 else "CSV", "observedContentType": "text/csv"}
        lines.append({
            "captureData": {"endpointInput": side, "endpointOutput": {"data": "0.25", "encoding": "CSV"}},
            "eventMetadata": {"eventId": f"e{place}", "inferenceTime": f"2026-03-01T12:00:{place:02}Z"},
        })  # fmt: skip
    (tmp_path / "capture.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = Requests(str(tmp_path), "sagemaker")
    (batch,) = source.read(source.pending({}))
    assert batch.rows["features"].to_pylist() == [[row["age"], place] for place, row in enumerate(ROWS[:20])]
    assert set(batch.rows["prediction"].to_pylist()) == {0.25}
    assert batch.rows["timestamp"].to_pylist()[3] == "2026-03-01T12:00:03Z"
    check_source(source, pa.table({"id": [f"e{place}" for place in range(20)]}))


def test_captured_requests_without_responses_are_inputs(tmp_path: Path) -> None:
    """A gateway may capture inputs alone: of a round, or of some of its files."""
    side = {"data": "1,2", "encoding": "CSV"}
    for place, sides in enumerate([{}, {"endpointOutput": {"data": "0.25", "encoding": "CSV"}}, {}]):
        line = {
            "captureData": {"endpointInput": side, **sides},
            "eventMetadata": {"eventId": "e", "inferenceTime": "2026-03-01T12:00:00Z"},
        }
        (tmp_path / f"{place}.jsonl").write_text(f"{json.dumps(line)}\n")
    source = Requests(str(tmp_path), "sagemaker")
    slices = source.pending({})
    for some, answers in ((slices, [None, 0.25, None]), (slices[:1], [None])):
        rows = joined([pa.Table.from_batches([batch.rows]) for batch in source.read(some)])
        assert rows["prediction"].to_pylist() == answers
        assert rows["features"].to_pylist() == [[1, 2]] * len(some)


def test_many_small_files_are_opened_a_few_times_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def counted(entry: Entry) -> Entry:
        opened.append(entry.part)
        return held(entry)

    monkeypatch.setattr(_reading, "held", counted)
    for number in range(40):
        text = json.dumps({"request_id": number, "request": json.dumps({"dataframe_records": [{f"x{number}": 1}]})})
        (tmp_path / f"{number:02}.jsonl").write_text(f"{text}\n")
    source = Requests(str(tmp_path))
    slices = source.pending({})
    names = {name for batch in source.read(slices) for name in batch.rows.schema.names}
    assert names >= {f"x{number}" for number in range(40)}
    assert source.fetch(slices, {index: [0] for index in range(40)})["id"].to_pylist() == [str(k) for k in range(40)]
    assert len(opened) <= 40 * 10


def test_a_piece_in_which_every_request_failed_moves_the_cursor(tmp_path: Path) -> None:
    pq.write_table(pa.table({"request": ["{}"] * 3, "status_code": [500] * 3}), tmp_path / "payload.parquet")
    source = Requests(str(tmp_path))
    (piece,) = source.pending({})
    assert piece.rows == 1
    batches = list(source.read([piece]))
    assert sum(batch.rows.num_rows for batch in batches) == 0
    assert [dict(batch.unreadable) for batch in batches if batch.unreadable] == [
        {"no request in this piece of the log succeeded": 1}
    ]
    assert source.pending({piece.part: piece.stop}) == []


def test_broken_requests_cost_themselves(tmp_path: Path) -> None:
    texts = ['{"inputs": [[1, 2]]}', "{broken", '{"inputs": [[3, 4]]}']
    pq.write_table(pa.table({"request": texts, "request_id": ["a", "b", "c"]}), tmp_path / "payload.parquet")
    source = Requests(str(tmp_path))
    (batch,) = source.read(source.pending({}))
    assert batch.rows["features"].to_pylist() == [[1, 2], None, [3, 4]]
    assert batch.rows["id"].to_pylist() == ["a", "b", "c"]


def test_single_inputs_are_found_again_behind_lines_that_cannot_be_read(tmp_path: Path) -> None:
    """Such a line keeps its number: what an annotator is shown is the input that was drawn, not one behind it."""
    for name in ("a", "b"):
        lines = [json.dumps({"request_id": f"{name}{k}", "request": '{"inputs": [[1], [2]]}'}) for k in range(6)]
        lines[1] = lines[3] = "{broken}"
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    source = Requests(str(tmp_path), broken="skip")
    slices = source.pending({})
    at = {
        key: (batch.slice_index, batch.first_row + number)
        for batch in source.read(slices)
        for number, key in enumerate(batch.rows["id"].to_pylist())
    }
    assert len(at) == 16
    for wanted in (["a0#1", "a2#0", "a5#1", "b4#0", "b2#1"], ["b5#0", "b5#1"]):
        rows: dict[int, list[int]] = {}
        for key in wanted:
            index, row = at[key]
            rows.setdefault(index, []).append(row)
        assert source.fetch(slices, rows)["id"].to_pylist() == wanted
    with pytest.raises(SourceError, match=r"a\.jsonl: input 2 of its slice cannot be read any more"):
        source.fetch(slices, {0: [2]})


def test_a_request_with_a_sign_that_was_cut_in_two_is_read_like_others(tmp_path: Path) -> None:
    texts = [r'{"instances": [{"say": "hi"}]}', r'{"instances": [{"say": "hi \ud83d"}]}']
    pq.write_table(
        pa.table({"request": texts, "response": [r'{"predictions": ["\ud83d"]}'] * 2}), tmp_path / "a.parquet"
    )
    source = Requests(str(tmp_path))
    (batch,) = source.read(source.pending({}))
    assert batch.rows["say"].to_pylist() == ["hi", "hi ?"]
    assert batch.rows["prediction"].to_pylist() == ["?"] * 2


def test_files_whose_columns_have_other_types_are_fetched_together(tmp_path: Path) -> None:
    rows = [[{"zip": 2139, "n": 1}], [{"zip": "SW1A", "n": 0.5}, {"zip": None, "n": 2}]]
    for number, records in enumerate(rows):
        line = {"request_id": 10, "request": json.dumps({"dataframe_records": records})}
        (tmp_path / f"{number}.jsonl").write_text(f"{json.dumps(line)}\n")
    source = Requests(str(tmp_path))
    slices = source.pending({})
    fetched = source.fetch(slices, {0: [0], 1: [1, 0]})
    assert fetched["zip"].to_pylist() == ["2139", None, "SW1A"]
    assert fetched["n"].to_pylist() == [1.0, 2.0, 0.5]
    assert fetched["id"].to_pylist() == ["10", "10#1", "10#0"]
    assert {batch.rows.schema.field("id").type for batch in source.read(slices)} == {pa.string()}


def test_ids_that_are_fractions_in_some_files_are_whole_numbers(tmp_path: Path) -> None:
    for number, key in enumerate([20_260_301_000_001, 2.0, None]):
        line = {"request_id": key, "request": '{"inputs": [[1]]}'}
        (tmp_path / f"{number}.jsonl").write_text(f"{json.dumps(line)}\n")
    source = Requests(str(tmp_path))
    found = [batch.rows["id"].to_pylist() for batch in source.read(source.pending({}))]
    assert found == [["20260301000001"], ["2"], [None]]


def test_what_is_no_log_of_requests_is_told(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "payload.parquet")
    with pytest.raises(SourceError, match=r"no column 'request'; it has: x. Is its layout another than mlflow\?"):
        Requests(str(tmp_path)).pending({})
    with pytest.raises(InputError, match="layout must be one of mlflow, v2, sagemaker; got 'kafka'"):
        Requests(str(tmp_path), "kafka")  # type: ignore[arg-type]

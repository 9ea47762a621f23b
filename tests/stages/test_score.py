"""What production logs is not always clean: a round goes on, counts everything once, or says what to change."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from opmon.errors import InputError, SourceError
from opmon.stages import open
from opmon.store import queue, revisions, rounds, schema, seen
from opmon.types import Label
from tests.tabular import tabular

LIMITS = {"min_inputs": 200, "max_inputs": 200, "max_age": "3650d"}
ANY = LIMITS | {"max_unscorable": 1.0, "max_skew": 1.0}


def one(monitor: Any, number: int = 1) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


def rewrite(path: Path, column: str, values: pa.Array) -> None:
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.schema.get_field_index(column), column, values), path)


@pytest.mark.parametrize("bad", [{0}, {1}, {0, 1}])
def test_a_batch_without_one_good_row_costs_only_itself(workbench: Any, sqlite: str, bad: set[int]) -> None:
    monitor = workbench.monitor(sqlite, round=ANY)
    for number in range(2):
        path = workbench.write_window(size=100)
        pixels = pq.read_table(path)["pixels"].combine_chunks().cast(pa.list_(pa.float32()))
        rewrite(path, "pixels", pa.nulls(100, pixels.type) if number in bad else pixels)
    assert monitor.advance().problems == []
    round_ = one(monitor)
    assert (round_.inputs, round_.unscorable) == (200 - 100 * len(bad), 100 * len(bad))
    assert round_.state == ("closed" if len(bad) == 2 else "labelling")


def test_requests_whose_columns_have_another_type_in_each_file_are_one_round(workbench: Any, sqlite: str) -> None:
    for town in (2139, "SW1A"):
        table = pq.read_table(path := workbench.write_window(size=100))
        rows = [{"pixels": pixels, "zip": town} for pixels in table["pixels"].to_pylist()]
        requests = [json.dumps({"dataframe_records": rows[start : start + 2]}) for start in range(0, 100, 2)]
        lines = [json.dumps({"request_id": place, "request": each}) for place, each in enumerate(requests)]
        path.with_suffix(".jsonl").write_text("".join(f"{line}\n" for line in lines))
        path.unlink()
    source, drift = {"type": "requests", "path": "production"}, {"enabled": True}
    monitor = workbench.monitor(sqlite, source=source, columns={}, round=ANY, drift=drift)
    assert monitor.advance().problems == []
    assert one(monitor).inputs == 200
    with monitor.store.read() as connection:
        shown = {task.payload["zip"] for task in queue.answers(connection, one(monitor).id)}
    assert shown == {"2139", "SW1A"}


@pytest.mark.parametrize("nothing", ["", "  ", None])
def test_a_prediction_that_was_not_logged_is_the_models_own(workbench: Any, sqlite: str, nothing: str | None) -> None:
    monitor = workbench.monitor(sqlite, columns={"id": "input_id", "prediction": "said"}, round=ANY)
    workbench.write_window(said=[nothing, "4"] * 100)
    assert monitor.advance().problems == []
    assert one(monitor).skew > 0.8  # type: ignore[operator]


def test_a_prediction_that_is_not_a_number_is_none(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, columns={"id": "input_id", "prediction": "said"}, round=ANY)
    workbench.write_window(said=pa.array([float("nan"), 4.0] * 100, from_pandas=False))
    assert monitor.advance().problems == []


@pytest.mark.parametrize("nothing", ["", None, float("nan")])
def test_an_input_that_names_no_version_was_answered_by_the_current_one(
    workbench: Any, sqlite: str, nothing: Any
) -> None:
    one_ = 1.0 if isinstance(nothing, float) else "1"
    monitor = workbench.monitor(sqlite, columns={"id": "input_id", "model_version": "served_by"})
    workbench.write_window(served_by=pa.array([nothing, one_] * 100, from_pandas=False))
    assert monitor.advance().problems == []
    assert (one(monitor).model_version, one(monitor).inputs) == ("1", 200)


def test_versions_may_be_long_names_but_not_texts(workbench: Any, database: str) -> None:
    monitor = workbench.monitor(database, columns={"id": "input_id", "model_version": "served_by"})
    path = workbench.write_window(served_by=["1"] * 100 + ["sha256:" + "e" * 64] * 100)
    assert monitor.advance().opened == 2, "the unknown version is known to the registry one day"
    path.with_name("more.parquet").write_bytes(path.read_bytes())
    rewrite(path.with_name("more.parquet"), "served_by", pa.array(["x" * 300] * 200))
    assert "model_version" in str(monitor.advance().problems[-1])


def test_a_round_keeps_the_column_that_names_versions(workbench: Any, sqlite: str) -> None:
    columns = {"id": "input_id", "model_version": "served_by"}
    monitor = workbench.monitor(sqlite, columns=columns, round=LIMITS | {"min_inputs": 100})
    workbench.write_window(served_by=["1", "9"] * 100)
    with monitor._at_work() as work:
        open.open_round(work)
    later = workbench.monitor(sqlite, columns={"id": "input_id"}, round=LIMITS | {"min_inputs": 100})
    later.advance()
    assert (one(later).received, one(later).inputs) == (100, 100)


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1772000000_123456789] * 200, pa.timestamp("ns")),
        pa.array([1772000000.5] * 199 + [float("nan")], from_pandas=False),
        pa.array(["2026-02-25T06:13:20Z"] * 199 + ["rubbish"]),
        pa.array([date(2026, 2, 25)] * 200),
        pa.array([datetime(2026, 2, 25, 1, tzinfo=UTC)] * 200, pa.timestamp("ms", tz="Asia/Kolkata")),
        pa.array([1772000000] * 199 + [2**52]),
        pa.array([1772000000000] * 200),
    ],
    ids=["nanoseconds", "fractions", "text", "dates", "zone", "whole", "milliseconds"],
)
def test_times_in_every_form(workbench: Any, sqlite: str, times: pa.Array) -> None:
    monitor = workbench.monitor(sqlite)
    rewrite(workbench.write_window(), "at", times)
    assert monitor.advance().problems == []
    assert one(monitor).ends_at.astimezone(UTC).date() == date(2026, 2, 25)  # type: ignore[union-attr]


@pytest.mark.parametrize("times", [[[1772000000]] * 200, [True] * 200, ["0001-01-01T00:00:00Z"] * 200])
def test_a_column_that_holds_no_times_is_named(workbench: Any, sqlite: str, times: list[Any]) -> None:
    monitor = workbench.monitor(sqlite)
    rewrite(workbench.write_window(), "at", pa.array(times))
    (problem,) = monitor.advance().problems
    assert isinstance(problem, SourceError)
    assert "'at' does not hold times" in str(problem)


@pytest.mark.parametrize(
    "ids",
    [
        [f"{k}" + "x" * 3000 for k in range(200)],
        [f"{k}\0" for k in range(200)],
        [b"\xff%d" % k for k in range(200)],
        [{"a": k} for k in range(200)],
    ],
    ids=["huge", "nul", "bytes", "struct"],
)
def test_an_id_that_can_be_none_is_told(workbench: Any, database: str, ids: list[Any]) -> None:
    monitor = workbench.monitor(database)
    rewrite(workbench.write_window(), "input_id", pa.array(ids))
    (problem,) = monitor.advance().problems
    assert isinstance(problem, SourceError)
    assert "'input_id'" in str(problem)


def test_ids_of_any_script_and_size_of_number(workbench: Any, database: str) -> None:
    monitor = workbench.monitor(database)
    rewrite(workbench.write_window(), "input_id", pa.array([f"ünï 🎉 {k}" for k in range(200)]))
    rewrite(workbench.write_window(), "input_id", pa.array([2**63 + k for k in range(200)], pa.uint64()))
    assert monitor.advance().problems == []


def test_an_input_in_a_round_that_waits_counts_once(workbench: Any, sqlite: str) -> None:
    """The second round is scored while the first one's file is away; the first must see its inputs there."""
    monitor = workbench.monitor(sqlite)
    first = workbench.write_window()
    shutil.copy(first, first.with_name("window-again.parquet"))
    with monitor._at_work() as work:
        open.open_round(work)
    away = first.rename(first.with_suffix(".tmp"))
    assert monitor.advance().problems
    away.rename(first)
    monitor.advance()
    assert [(one(monitor, n).inputs, one(monitor, n).duplicates) for n in (1, 2)] == [(0, 200), (200, 0)]


def test_an_input_that_could_not_be_scored_is_counted_when_it_is_logged_again(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, round=ANY)
    path = workbench.write_window()
    whole = pq.read_table(path)
    pixels = whole["pixels"].combine_chunks().cast(pa.list_(pa.float32()))
    rewrite(path, "pixels", pa.concat_arrays([pa.nulls(150, pixels.type), pixels[150:]]))
    monitor.advance()
    pq.write_table(whole, path.with_name("window-again.parquet"))
    monitor.advance()
    first, second = one(monitor, 1), one(monitor, 2)
    assert (first.inputs, first.unscorable, first.duplicates) == (50, 150, 0)
    assert (second.inputs, second.unscorable, second.duplicates) == (150, 0, 50)


def test_ids_of_rounds_long_past_are_forgotten(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, round={"min_inputs": 5, "max_inputs": 5, "max_age": "1h"})
    workbench.write_window(size=5 * (seen.REMEMBERED_ROUNDS + 4))
    monitor.advance()
    with monitor.store.read() as connection:
        kept = connection.scalar(sa.select(sa.func.count()).select_from(schema.seen))
    assert kept == seen.REMEMBERED_ROUNDS + 1


def test_lines_of_text_with_everything_missing(workbench: Any, sqlite: str) -> None:
    """JSON lines: null pixels, an empty id's neighbour, a prediction that comes and goes."""
    monitor = workbench.monitor(
        sqlite, columns={"id": "id", "prediction": "said"}, source={"path": "production"}, round=ANY
    )
    rows = [{"id": f"é{k}", "pixels": None if k % 4 == 0 else [0.5] * 64, "said": "3"} for k in range(200)]
    for row in rows[::3]:
        del row["said"]
    path = workbench.folder / "production" / "log.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    assert monitor.advance().problems == []
    assert (one(monitor).inputs, one(monitor).unscorable) == (150, 50)


def spoil(path: Path, count: int) -> pa.Table:
    """Makes the first inputs of a file unscorable; gives the file as it was."""
    whole = pq.read_table(path)
    pixels = whole["pixels"].combine_chunks().cast(pa.list_(pa.float32()))
    rewrite(path, "pixels", pa.concat_arrays([pa.nulls(count, pixels.type), pixels[count:]]))
    return whole


def test_a_stream_of_corrupt_inputs_stops_the_round_and_raising_the_limit_lets_it_go_on(
    workbench: Any, sqlite: str
) -> None:
    strict = workbench.monitor(sqlite, round=LIMITS)
    spoil(workbench.write_window(), 21)
    workbench.write_window()
    for _ in range(2):
        (problem,) = strict.advance().problems
        assert isinstance(problem, SourceError)
        assert "21 of 200 inputs cannot be scored (10.5 %), and round.max_unscorable is 0.1" in str(problem)
        assert "column 'pixels' is empty (21)" in str(problem)
        assert "nothing is lost" in str(problem)
    assert (one(strict).state, one(strict, 2).state) == ("opened", "labelling")
    monitor = workbench.monitor(sqlite, round=LIMITS | {"max_unscorable": 0.2})
    assert monitor.advance().problems == []
    assert (one(monitor).inputs, one(monitor).unscorable, one(monitor).state) == (179, 21, "labelling")
    workbench.answer(monitor)
    monitor.advance()
    with monitor.store.read() as connection:
        said = revisions.latest_estimate(connection, one(monitor).id)
    note = next(note for note in said.estimate.notes if "cannot be scored" in note)
    assert note.startswith("21 of 200 inputs cannot be scored (10.5 %): this is of the others; over all of them it")


def test_a_stopped_round_goes_on_once_its_inputs_are_read_rightly(workbench: Any, sqlite: str) -> None:
    path = workbench.write_window()
    table = pq.read_table(path)
    pq.write_table(table.append_column("old", pa.nulls(200, pa.list_(pa.float32()))), path)
    (problem,) = workbench.monitor(sqlite, round=LIMITS, inputs={"tensor": "old"}).advance().problems
    assert "200 of 200 inputs cannot be scored" in str(problem)
    monitor = workbench.monitor(sqlite, round=LIMITS)
    assert monitor.advance().problems == []
    assert (one(monitor).inputs, one(monitor).unscorable) == (200, 0)


@pytest.mark.parametrize(("bad", "stops"), [(0, False), (1, False), (2, True), (3, True)])
def test_one_bad_input_of_three_stops_nothing(workbench: Any, sqlite: str, bad: int, stops: bool) -> None:
    monitor = workbench.monitor(sqlite, round={"min_inputs": 3, "max_inputs": 3, "max_age": "3650d"})
    spoil(workbench.write_window(size=3), bad)
    assert bool(monitor.advance().problems) == stops
    assert one(monitor).unscorable == (None if stops else bad)


def test_missing_values_reach_the_model_which_answers_as_the_original_does(workbench: Any, sqlite: str) -> None:
    fitted, names, log = tabular(workbench, gaps=True)
    monitor = workbench.monitor(sqlite, columns={"id": "input_id"}, inputs={}, round=LIMITS)
    assert monitor.advance().problems == []
    round_ = one(monitor)
    assert (round_.inputs, round_.unscorable, round_.classes) == (200, 0, ["default", "paid"])
    assert sum(log[name].null_count for name in names) == 15
    frame = pq.read_table(monitor.registry.download(round_.run_id, "frame.parquet", workbench.folder / "got"))
    expected = fitted.predict(log.select(names).to_pandas().to_numpy())
    assert frame["prediction"].to_pylist() == expected.tolist()


def test_missing_values_that_the_model_refuses_are_counted_by_column(
    workbench: Any, sqlite: str, caplog: pytest.LogCaptureFixture
) -> None:
    tabular(workbench, gaps=False)
    monitor = workbench.monitor(sqlite, columns={"id": "input_id"}, inputs={}, round=LIMITS)
    assert monitor.advance().problems == []
    assert (one(monitor).inputs, one(monitor).unscorable) == (185, 15)
    assert "column 'income' is empty, and the model gives no answer without it (5)" in caplog.text


@pytest.mark.parametrize("whole", [0, 120])
def test_a_column_that_was_renamed_stops_the_round(workbench: Any, sqlite: str, whole: int) -> None:
    _, _, log = tabular(workbench, gaps=True)
    folder = workbench.folder / "production"
    (folder / "log.parquet").unlink()
    emptied = log.set_column(1, "income", pa.nulls(200, pa.float32()))
    pq.write_table(log[:whole] if whole else emptied, folder / "a.parquet")
    if whole:
        pq.write_table(log[whole:].rename_columns({"income": "revenue"}), folder / "b.parquet")
    settings: dict[str, Any] = {"columns": {"id": "input_id"}, "round": LIMITS}
    (problem,) = workbench.monitor(sqlite, inputs={}, **settings).advance().problems
    assert f"the model takes 'income', which holds nothing in {200 - whole} inputs in a row" in str(problem)
    meant = workbench.monitor(sqlite, inputs={"missing": {"empty": ["income"]}}, **settings)
    assert meant.advance().problems == []


def test_predictions_in_other_words_stop_the_round_before_a_label_is_asked_for(workbench: Any, sqlite: str) -> None:
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    workbench.write_window(said=["4"] * 200)
    settings: dict[str, Any] = {"classes": names, "round": LIMITS}
    (problem,) = (
        workbench.monitor(sqlite, columns={"id": "input_id", "prediction": "said"}, **settings).advance().problems
    )
    assert isinstance(problem, SourceError)
    assert "none of the model's classes: 4 (200), 200 of 200; the model's classes are zero, one, two" in str(problem)
    assert "nothing is lost" in str(problem)
    monitor = workbench.monitor(sqlite, columns={"id": "input_id"}, **settings)
    assert (one(monitor).state, one(monitor).draw) == ("opened", None)
    assert monitor.advance().problems == []
    assert one(monitor).state == "labelling"


WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@pytest.mark.parametrize("backwards", [False, True], ids=["in order", "in another order"])
def test_the_model_the_log_and_labels_may_each_have_their_words(workbench: Any, sqlite: str, backwards: bool) -> None:
    """The model answers 4, production logged D4, the monitor speaks of four, and annotators say any of them."""
    spelt = {word: [number, f"D{number}"] for number, word in enumerate(WORDS)}
    spelt = dict(reversed(spelt.items())) if backwards else spelt
    path = workbench.write_window()
    said = [f"D{workbench.truth[key]}" for key in pq.read_table(path)["input_id"].to_pylist()]
    rewrite_with(path, said=said)
    columns = {"id": "input_id", "prediction": "said"}
    monitor = workbench.monitor(sqlite, classes=spelt, columns=columns, round=LIMITS | {"max_skew": 0.2})
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection)
        assert set(one(monitor).classes or ()) == set(WORDS)
    now = datetime(2026, 3, 2, tzinfo=UTC)
    ways = (str, lambda truth: f"D{truth}", lambda truth: WORDS[int(truth)])
    labels = [Label(task.id, "ann", ways[k % 3](workbench.truth[task.input_id]), now) for k, task in enumerate(tasks)]
    with monitor.store.write() as connection, pytest.raises(InputError, match=r"one of the classes .*; got 'D10'"):
        queue.record(connection, [Label(tasks[0].id, "ann", "D10", now)], now)
    with monitor.store.write() as connection:
        assert queue.record(connection, labels, now).new == len(tasks)
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        (estimate,) = revisions.latest_estimates(connection, workbench.name)
    assert estimate.estimate.value == 1.0
    assert one(monitor).skew == pytest.approx(0, abs=0.2)


def rewrite_with(path: Path, **columns: list[Any]) -> None:
    table = pq.read_table(path)
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, path)


def test_a_stray_prediction_makes_its_input_unscorable(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, columns={"id": "input_id", "prediction": "said"}, round=ANY)
    workbench.write_window(said=["ERROR"] + ["4"] * 199)
    assert monitor.advance().problems == []
    assert (one(monitor).inputs, one(monitor).unscorable) == (199, 1)


def test_a_skew_above_the_limit_stops_the_round_until_it_is_raised(workbench: Any, sqlite: str) -> None:
    columns = {"id": "input_id", "prediction": "said"}
    workbench.write_window(said=["4"] * 200)
    (problem,) = workbench.monitor(sqlite, columns=columns, round=LIMITS).advance().problems
    assert "round.max_skew is 0.3" in str(problem)
    assert workbench.monitor(sqlite, columns=columns, round=LIMITS | {"max_skew": 1.0}).advance().problems == []


def test_labels_of_a_model_that_does_not_name_its_classes_must_be_their_numbers(workbench: Any, sqlite: str) -> None:
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).normal(size=(64, 10)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["pixels", "w"], ["s"]), helper.make_node("Softmax", ["s"], ["y"])]
    given = [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 64])]
    gives = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "k"])]
    graph = helper.make_graph(nodes, "plain", given, gives, [numpy_helper.from_array(weights, "w")])
    workbench.register(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), "unnamed")
    workbench.write_window()
    monitor = workbench.monitor(sqlite)
    assert monitor.advance().problems == []
    for truth in ("x", "11", "10", "-1"):
        with pytest.raises(InputError, match=rf"classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9; got '{truth}'"):
            say(monitor, truth)
    assert say(monitor, "9.0") == 1


def say(monitor: Any, truth: str) -> int:
    with monitor.store.write() as connection:
        (task,) = queue.open_tasks(connection, limit=1)
        now = datetime(2026, 3, 2, tzinfo=UTC)
        return queue.record(connection, [Label(task.id, "ann", truth, now)], now).new

"""Inputs that cannot be read: the round counts them and goes on, or says what to do and goes on later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from opmon.errors import InputError, NotFoundError
from opmon.stages.open import open_round
from opmon.store import revisions, rounds

ANY = {"min_inputs": 200, "max_inputs": 400, "max_age": "3650d", "max_unscorable": 0.5}
SKIP = {"path": "production", "broken": "skip"}


def one(monitor: Any, number: int = 1) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


def damage(path: Path, group: int = 1, rows: int = 50) -> None:
    """A file of row groups, one of which cannot be read."""
    pq.write_table(pq.read_table(path), path, row_group_size=rows)
    content = bytearray(path.read_bytes())
    page = pq.ParquetFile(path).metadata.row_group(group).column(0).dictionary_page_offset
    content[page : page + 30] = b"\xff" * 30
    path.write_bytes(content)


def test_a_damaged_row_group_is_counted_and_the_round_goes_on(workbench: Any, sqlite: str) -> None:
    damage(workbench.write_window())
    assert "cannot be read" in str(workbench.monitor(sqlite, round=ANY).advance().problems[0])
    monitor = workbench.monitor(sqlite, round=ANY, source=SKIP)
    assert monitor.advance().problems == []
    assert (one(monitor).received, one(monitor).inputs, one(monitor).unscorable) == (200, 150, 50)
    workbench.answer(monitor)
    monitor.advance()
    with monitor.store.read() as connection:
        told = revisions.latest_estimate(connection, one(monitor).id)
    assert one(monitor).state == "closed"
    assert any("50 of 200 inputs cannot be scored" in note for note in told.estimate.notes)


def test_too_many_rows_that_cannot_be_read_stop_the_round(workbench: Any, sqlite: str) -> None:
    damage(workbench.write_window())
    monitor = workbench.monitor(sqlite, round=ANY | {"max_unscorable": 0.1}, source=SKIP)
    assert "50 of 200 inputs cannot be scored (25 %)" in str(monitor.advance().problems[0])
    assert "window-001.parquet cannot be read" in str(one(monitor).problem)


def test_rows_that_cannot_be_read_are_of_the_version_that_has_most(workbench: Any, sqlite: str) -> None:
    path = workbench.write_window(served_by=["1"] * 120 + ["9"] * 80)
    columns = {"id": "input_id", "model_version": "served_by"}
    monitor = workbench.monitor(sqlite, round=ANY | {"min_inputs": 50}, source=SKIP, columns=columns)
    damage(path, group=0)
    monitor.advance()
    assert (one(monitor).received, one(monitor).inputs, one(monitor).unscorable) == (120, 70, 50)
    assert one(monitor, 2).received == 80


# a poisoned round


def poisoned(workbench: Any, sqlite: str, **changes: Any) -> Any:
    """A monitor whose round 1 cannot be read: one of its two files was replaced."""
    workbench.write_window(size=150)
    second = workbench.write_window(size=50)
    monitor = workbench.monitor(sqlite, round=ANY, **changes)
    with monitor._at_work() as work:
        assert open_round(work)
    pq.write_table(pq.read_table(second).slice(0, 40), second)
    assert "window-002.parquet: the Parquet file was written again" in str(monitor.advance().problems[0])
    return monitor


def test_the_good_inputs_of_a_poisoned_round_go_to_a_new_one(workbench: Any, sqlite: str) -> None:
    monitor = poisoned(workbench, sqlite)
    with pytest.raises(InputError, match="give it up first"):
        monitor.reopen(1)
    monitor.abandon(1, "window-002 was replaced")
    with pytest.raises(InputError, match=r"no file of round 1 is called 'window-02\*'; it has: window-001.parquet, "):
        monitor.reopen(1, ["window-02*"])
    with pytest.raises(InputError, match="nothing is left"):
        monitor.reopen(1, ["*"])
    found = monitor.reopen(1, ["window-002.parquet"])
    assert (found.number, found.received, found.left_out) == (2, 150, ("window-002.parquet",))
    (problem,) = monitor.advance().problems
    assert "is read from its start under another name" in str(problem)
    assert (one(monitor, 2).state, one(monitor, 2).inputs, one(monitor, 2).duplicates) == ("labelling", 150, 0)
    assert one(monitor).problem == "given up: window-002 was replaced; inputs of it went to round 2"

    again = workbench.folder / "production" / "window-002.parquet"
    again.rename(again.with_name("window-002-again.parquet"))
    workbench.answer(monitor)
    workbench.write_window(size=160)
    assert monitor.advance().problems == []
    assert one(monitor, 2).state == "closed"
    assert (one(monitor, 3).received, one(monitor, 3).duplicates) == (200, 0)


def test_inputs_of_a_round_that_was_scored_are_no_duplicates_of_themselves(workbench: Any, sqlite: str) -> None:
    workbench.write_window()
    monitor = workbench.monitor(sqlite)
    monitor.advance()
    monitor.abandon(1, "the labels were of other inputs")
    assert monitor.reopen(1).number == 2
    assert monitor.advance().problems == []
    assert (one(monitor, 2).inputs, one(monitor, 2).duplicates) == (200, 0)
    with pytest.raises(InputError, match=r"has no inputs any more .*went to round 2"):
        monitor.reopen(1)
    with pytest.raises(NotFoundError):
        monitor.reopen(9)
    workbench.write_window()
    assert monitor.advance().opened == 1, "the cursor stayed where it was"
    assert one(monitor, 3).inputs == 200


def test_a_round_of_one_version_keeps_its_version(workbench: Any, sqlite: str) -> None:
    small = {"round": ANY | {"min_inputs": 50}}
    workbench.write_window(size=100, served_by=["1", "9"] * 50)
    workbench.write_window(size=100, served_by=["1", "9"] * 50)
    monitor = workbench.monitor(sqlite, columns={"id": "input_id", "model_version": "served_by"}, **small)
    monitor.advance()
    numbers = {one(monitor, number).only_version: number for number in (1, 2)}
    monitor.abandon(numbers["1"], "read it anew")
    found = workbench.monitor(sqlite, **small).reopen(numbers["1"], ["window-001*"])
    assert (found.number, found.received) == (3, 50)
    assert workbench.monitor(sqlite, **small).advance().opened == 0
    assert (one(monitor, 3).inputs, one(monitor, 3).only_version) == (50, "1")


def test_types_and_broken_mend_a_round_that_is_open(workbench: Any, sqlite: str) -> None:
    """A file of JSON whose last rows are of another type than its first."""
    path = workbench.write_window()
    rows = pq.read_table(path).to_pylist()
    path.unlink()
    lines = [json.dumps({"input_id": row["input_id"], "pixels": row["pixels"], "age": 4}) for row in rows]
    filler = [json.dumps({"input_id": f"f{k}", "pixels": rows[0]["pixels"], "age": 4}) for k in range(4000)]
    odd = [json.dumps({"input_id": "odd", "pixels": rows[0]["pixels"], "age": "four"})]
    path.with_suffix(".jsonl").write_text("\n".join([*filler, *lines, *odd]) + "\n")
    options = {"columns": {"id": "input_id"}, "round": ANY | {"max_inputs": 10_000}}
    monitor = workbench.monitor(sqlite, **options)
    assert "line 4201: column 'age' is int64" in str(monitor.advance().problems[0])
    monitor = workbench.monitor(sqlite, source={"path": "production", "types": {"age": "string"}}, **options)
    assert monitor.advance().problems == []
    assert (one(monitor).inputs, one(monitor).unscorable) == (4201, 0)

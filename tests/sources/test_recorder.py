"""The source reads what the recorder wrote, and tells what it did not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import opmon
from opmon import plugins
from opmon.abc import Source
from opmon.errors import InputError
from opmon.sources.files import Files
from opmon.testing import check_source
from opmon.testing.sources import positions_after
from opmon.types import Slice

GONE = "a file of the recorder is gone"
FULL = "the recorder's buffer was full"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    made: Source = plugins.make("source", "recorder", {"path": str(tmp_path)})
    return made


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., list[str]]:
    """Has a process of its own, as it were, write files of so many records; more than ten do not fit."""

    def write(*counts: int, last: int = 0, name: str = "inputs") -> list[str]:
        keys = []
        with opmon.Recorder(str(tmp_path), buffer_rows=10, rows_per_file=10, name=name) as recorder:
            for count in counts:
                with recorder.locks()[0]:
                    keys += [recorder.record([float(number)]) for number in range(count)][:10]
                recorder.flush()
            for _ in range(last):
                recorder.record(object())
        return keys

    return write


def test_what_was_recorded_is_what_is_read(source: Source, record: Callable[..., list[str]]) -> None:
    keys = record(8, 9) + record(7, last=2) + record(12)
    check_source(source, pa.table({"id": keys, "inclusion": [1.0] * 34}))
    assert source.inclusion == "inclusion"
    assert source.answers == ("prediction", "scores")


def test_drops_are_told_once(source: Source, record: Callable[..., list[str]]) -> None:
    record(15, 12, 3)
    record(11)
    slices = source.pending({})

    assert source.lost(slices) == {FULL: 8}
    assert [source.lost([piece]) for piece in slices] == [{FULL: 5}, {FULL: 2}, {}, {FULL: 1}]


def test_a_file_that_is_read_in_pieces_tells_its_drops_with_the_first(
    source: Source, record: Callable[..., list[str]]
) -> None:
    record(15, 12)
    positions: dict[str, str] = {}
    told = []
    while slices := source.pending(positions, limit=4):
        told.append(sum(source.lost(slices).values()))
        positions = positions_after(positions, slices)
    assert told == [5, 0, 2, 0, 0]


def test_a_file_of_no_rows_is_told_with_the_next_that_has_some(
    source: Source, record: Callable[..., list[str]]
) -> None:
    record(3, last=2)
    first = source.pending({})
    assert source.lost(first) == {}
    record(last=1)
    positions = positions_after({}, first)
    assert source.pending(positions) == []
    record(3)
    assert source.lost(source.pending(positions)) == {"the recorder had no column for a value": 3}


def test_a_file_between_two_others_that_is_gone_is_missed(
    source: Source, record: Callable[..., list[str]], tmp_path: Path
) -> None:
    record(15, 12, 3, 4)
    names = sorted(tmp_path.glob("*/*.parquet"), key=lambda file: file.name)
    for gone in names[1:3]:
        gone.unlink()

    assert source.lost(source.pending({})) == {FULL: 7, GONE: 13}


def test_files_that_were_read_and_removed_are_not_missed(
    source: Source, record: Callable[..., list[str]], tmp_path: Path
) -> None:
    record(15, 12, 3)
    names = sorted(tmp_path.glob("*/*.parquet"), key=lambda file: file.name)
    for read in names[:2]:
        read.unlink()

    assert source.lost(source.pending({})) == {}


def test_one_of_several_recorders_in_a_folder(record: Callable[..., list[str]], tmp_path: Path) -> None:
    record(12, name="a")
    record(14, name="b")
    record(13, name="b-b")
    source = plugins.make("source", "recorder", {"path": str(tmp_path), "name": "b"})
    slices: list[Slice] = source.pending({})
    assert [piece.rows for piece in slices] == [10]
    assert source.lost(slices) == {FULL: 4}


def test_a_damaged_file_costs_itself(source: Source, record: Callable[..., list[str]], tmp_path: Path) -> None:
    record(3, 4)
    slices = source.pending({})
    damaged = min(tmp_path.glob("*/*.parquet"), key=lambda file: file.name)
    damaged.write_bytes(damaged.read_bytes()[:-20])
    batches = list(source.read(slices))
    assert sum(batch.rows.num_rows for batch in batches) == 4
    assert sum(sum(batch.unreadable.values()) for batch in batches) == 3
    assert source.lost(slices) == {}


def test_what_lies_in_an_object_store(bucket: str) -> None:
    with opmon.Recorder(f"{bucket}/inputs", buffer_rows=10, rows_per_file=10) as recorder:
        for _ in range(2):
            with recorder.locks()[0]:
                keys = [recorder.record([float(number)]) for number in range(12)]
            recorder.flush()
    source = plugins.make("source", "recorder", {"path": f"{bucket}/inputs"})
    slices = source.pending({})
    assert [piece.rows for piece in slices] == [10, 10]
    assert [row for batch in source.read(slices, ["id"]) for row in batch.rows["id"].to_pylist()][10:] == keys[:10]
    assert source.lost(slices) == {FULL: 4}


def test_a_monitor_may_begin_now(record: Callable[..., list[str]], tmp_path: Path) -> None:
    record(5)
    source = plugins.make("source", "recorder", {"path": str(tmp_path), "since": "now"})
    begins = source.begins()
    record(6)
    assert [piece.rows for piece in source.pending(begins)] == [6]


def test_other_sources_tell_nothing(record: Callable[..., list[str]], tmp_path: Path) -> None:
    record(12)
    source = Files(str(tmp_path))
    assert source.lost(source.pending({})) == {}
    assert source.inclusion is None


def test_a_wrong_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="letters, digits"):
        plugins.make("source", "recorder", {"path": str(tmp_path), "name": "../x"})

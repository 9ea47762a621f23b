"""What holds for every format: nothing is lost, nothing is read twice, and the order is always the same."""

from __future__ import annotations

import gzip
import json
import time
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from opmon.abc import Source
from opmon.errors import InputError, SourceError
from opmon.plugins import make
from opmon.sources.files import Files
from opmon.types import Slice

ROWS = [{"id": i, "x": i / 2, "name": f"n{i}"} for i in range(10)]


def _csv(rows: list[dict[str, object]], header: bool = True) -> str:
    lines = ["id,x,name"] if header else []
    return "\n".join(lines + [f"{row['id']},{row['x']},{row['name']}" for row in rows]) + "\n"


def _jsonl(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _parquet(rows: list[dict[str, object]]) -> dict[str, list[object]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


WRITERS = {
    "a.parquet": _parquet,
    "a.csv": _csv,
    "a.jsonl": _jsonl,
    "a.csv.gz": lambda rows: gzip.compress(_csv(rows).encode()),
    "a.jsonl.gz": lambda rows: gzip.compress(_jsonl(rows).encode()),
}


@pytest.fixture(params=WRITERS)
def part(request, log):
    log.write(request.param, WRITERS[request.param](ROWS))
    return request.param


def test_files_is_the_source_that_the_plugin_seam_finds(tmp_path) -> None:
    assert isinstance(make("source", "files", {"path": str(tmp_path)}), Source)


def test_files_read_whole(log, part, rows_of) -> None:
    files = log.files()
    (piece,) = files.pending({})
    assert (piece.part, piece.rows) == (part, 10)
    assert rows_of(files, [piece]) == ROWS
    assert files.pending({part: piece.stop}) == []


@pytest.mark.parametrize("limit", [1, 3, 10, 11])
def test_files_read_in_rounds_gives_every_row_once(log, part, drain, limit) -> None:
    assert drain(log.files(), {}, limit) == ROWS


def test_files_read_again_gives_the_same(log, part, rows_of) -> None:
    files = log.files()
    first = files.pending({}, 4)
    second = files.pending({part: first[0].stop}, 4)
    assert rows_of(files, second) == rows_of(files, second) == ROWS[4:8]


def test_files_projection_reads_only_the_columns_asked_for(log, part, rows_of) -> None:
    files = log.files()
    assert rows_of(files, files.pending({}), ["x", "id"]) == [{"x": row["x"], "id": row["id"]} for row in ROWS]


def test_files_fetch_gives_rows_in_the_order_asked(log, part) -> None:
    files = log.files()
    first = files.pending({}, 4)[0]
    second = files.pending({part: first.stop})[0]
    found = files.fetch([first, second], {1: [5, 0, 5], 0: [3]})
    assert found.to_pylist() == [ROWS[3], ROWS[9], ROWS[4], ROWS[9]]


def test_files_fetch_of_nothing_has_the_columns(log, part) -> None:
    files = log.files()
    assert files.fetch(files.pending({}), {0: []}).column_names == ["id", "x", "name"]


@pytest.mark.parametrize("wanted", [{0: [10]}, {0: [-1]}, {1: [0]}])
def test_files_fetch_outside_of_the_slice_is_an_error(log, part, wanted) -> None:
    files = log.files()
    with pytest.raises(InputError, match="slice"):
        files.fetch(files.pending({}), wanted)


def test_files_unknown_column_is_an_error_with_the_near_one(log, part) -> None:
    files = log.files()
    with pytest.raises(SourceError, match=r"'nme'.*Did you mean 'name'"):
        list(files.read(files.pending({}), ["nme"]))


def test_files_arrive_at_their_time_of_writing_oldest_first(log) -> None:
    for name, age in (("a.csv", 10), ("z.csv", 30), ("m.csv", 20)):
        log.write(name, _csv(ROWS), age)
    slices = log.files().pending({})
    assert [piece.part for piece in slices] == ["z.csv", "m.csv", "a.csv"]
    assert abs((datetime.now(UTC) - slices[0].arrived_at).total_seconds() - 30) < 5


def test_files_late_file_with_an_earlier_name_is_read(log, drain) -> None:
    log.write("2026-02.csv", _csv(ROWS[:5]))
    positions: dict[str, str] = {}
    drain(log.files(), positions)
    log.write("2026-01.csv", _csv(ROWS[5:]), age=1000)
    assert drain(log.files(), positions) == ROWS[5:]


def test_files_limit_goes_over_several_files(log) -> None:
    for name in ("a.csv", "b.jsonl"):
        log.write(name, WRITERS[name.replace("b", "a")](ROWS), age=10)
    assert [piece.rows for piece in log.files().pending({}, 12)] == [10, 2]
    assert log.files().pending({}, 0) == []


@pytest.mark.parametrize("name", ["_a.csv", ".a.csv", "a.csv.tmp", "a.csv.part", "_temporary/a.csv", ".git/a.csv"])
def test_files_that_are_being_written_are_left_alone(log, name) -> None:
    log.write(name, _csv(ROWS))
    assert log.files(pattern="*").pending({}) == []


def test_files_of_nested_folders_are_parts_with_slashes(log) -> None:
    log.write("day=1/hour=2/a.csv", _csv(ROWS))
    assert log.files().pending({})[0].part == "day=1/hour=2/a.csv"


def test_files_of_a_glob(log) -> None:
    for name in ("x/a.csv", "y/a.csv", "x/deep/er/b.csv", "x/a.jsonl"):
        log.write(name, _csv(ROWS))
    found = Files(str(log.folder / "x" / "**" / "*.csv")).pending({})
    assert sorted(piece.part for piece in found) == ["a.csv", "deep/er/b.csv"]
    found = Files(str(log.folder / "*" / "a.csv")).pending({})
    assert sorted(piece.part for piece in found) == ["x/a.csv", "y/a.csv"]


def test_files_of_a_single_file_and_a_pattern(log) -> None:
    for name in ("a.csv", "b.csv"):
        log.write(name, _csv(ROWS))
    assert [piece.part for piece in Files(str(log.folder / "b.csv")).pending({})] == ["b.csv"]
    assert [piece.part for piece in log.files(pattern="a*").pending({})] == ["a.csv"]


def test_files_with_a_name_that_says_no_format_need_one(log, rows_of) -> None:
    log.write("inputs.log", _jsonl(ROWS))
    with pytest.raises(SourceError, match=r"inputs\.log.*say format"):
        log.files(pattern="*.log").pending({})
    files = log.files(pattern="*.log", format="jsonl")
    assert rows_of(files, files.pending({})) == ROWS


def test_files_differing_columns_are_null(log, rows_of) -> None:
    log.write("a.csv", "id,x\n1,2.5\n", age=9)
    log.write("b.jsonl", '{"id": 2, "y": true}\n', age=8)
    log.write("c.parquet", {"id": pa.array([3], pa.int8())}, age=7)
    files = log.files()
    assert rows_of(files, files.pending({})) == [
        {"id": 1, "x": 2.5, "y": None},
        {"id": 2, "x": None, "y": True},
        {"id": 3, "x": None, "y": None},
    ]


def test_files_whole_numbers_and_fractions_become_fractions(log, rows_of) -> None:
    log.write("a.csv", "x\n1\n", age=9)
    log.write("b.csv", "x\n1.5\n", age=8)
    files = log.files()
    assert [type(row["x"]) for row in rows_of(files, files.pending({}))] == [float, float]


def test_files_text_yields_to_text_and_to_stated_types(log, rows_of) -> None:
    log.write("a.csv", "id\n007\n", age=9)
    log.write("b.jsonl", '{"id": 8}\n', age=8)
    files = log.files()
    assert [row["id"] for row in rows_of(files, files.pending({}))] == ["007", "8"]
    log.write("c.parquet", {"id": ["p"]}, age=7)
    assert [row["id"] for row in rows_of(files, files.pending({}))] == ["007", "8", "p"]


def test_files_types_that_cannot_go_together_name_both_files_and_the_column(log) -> None:
    log.write("a.parquet", {"x": [1]}, age=9)
    log.write("b.parquet", {"x": ["one"]}, age=8)
    files = log.files()
    with pytest.raises(SourceError, match=r"'x' is int64 in a\.parquet and string in b\.parquet"):
        list(files.read(files.pending({})))


def test_files_stated_type_wins(log, rows_of) -> None:
    log.write("a.csv", "id,x\n1,2\n", age=9)
    log.write("b.parquet", {"id": [5]}, age=8)
    files = log.files(types={"id": "string", "x": "float64"})
    assert rows_of(files, files.pending({})) == [{"id": "1", "x": 2.0}, {"id": "5", "x": None}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": ""}, "path is empty"),
        ({"format": "xml"}, "auto, parquet, csv, jsonl"),
        ({"types": {"x": "int"}}, "string, int64"),
        ({"settle_seconds": 0}, "settle_seconds must be greater than 0"),
        ({"delimiter": "::"}, "one character"),
        ({"broken": "ignore"}, "stop, skip"),
    ],
)
def test_files_wrong_options_are_told(log, options, message) -> None:
    with pytest.raises(InputError, match=message):
        log.files(**options)


def test_files_missing_folder_is_an_error_and_an_empty_one_is_not(log) -> None:
    assert log.files().pending({}) == []
    with pytest.raises(SourceError, match="no file or folder"):
        Files(str(log.folder / "nowhere")).pending({})


def test_files_positions_of_another_source_are_an_error(log) -> None:
    log.write("a.csv", _csv(ROWS))
    with pytest.raises(SourceError, match="not written by the source 'files'"):
        log.files().pending({"a.csv": "offset 3"})


def test_files_part_outside_of_the_folder_is_an_error(log) -> None:
    (log.folder.parent / "secret.csv").write_text("a\n1\n")
    piece = Slice("../secret.csv", "0", "2/2@2-0#00000000", 1, datetime.now(UTC))
    with pytest.raises(SourceError, match="not a file below"):
        list(log.files().read([piece]))


def test_files_of_one_cycle_are_listed_once_and_what_comes_meanwhile_waits(log, rows_of) -> None:
    log.write("a.jsonl", _jsonl(ROWS[:2]), age=200)
    log.write("b.jsonl", _jsonl(ROWS[2:4]), age=100)
    files = log.files()
    cycle = files.for_cycle()
    (first,) = cycle.pending({}, 2)
    log.write("c.jsonl", _jsonl(ROWS[4:]))
    (second,) = cycle.pending({first.part: first.stop})
    assert rows_of(files, [first, second]) == ROWS[:4]
    stands = {piece.part: piece.stop for piece in (first, second)}
    assert cycle.pending(stands) == []
    assert [piece.part for piece in files.pending(stands)] == ["c.jsonl"]


def test_files_of_a_machine_whose_clock_is_ahead_may_be_being_written(log, drain) -> None:
    """A last line without a newline is no row as long as the file's time is yet to come, unless it is absurd."""
    log.write("a.csv", "id,text\n1,whole\n2,half of", age=-600)
    log.write("b.csv", "id,text\n3,left alone", age=-86_400 * 365)
    assert sorted(row["id"] for row in drain(log.files(), {})) == [1, 3]


@pytest.mark.parametrize("filler", ["", "x" * 100_000], ids=["small", "large"])
def test_files_of_one_cycle_are_as_old_as_they_were_when_they_were_listed(log, drain, monkeypatch, filler) -> None:
    """A row that is half written then is no row an hour later, in the same cycle, because nobody looked again."""
    log.write("a.csv", f"id,text\n1,{filler}\n2,half of")
    log.write("b.csv", "id,text\n1,b\n2,left alone", age=200)
    files, positions = log.files(pattern="a.csv"), dict[str, str]()
    cycle, others = files.for_cycle(), log.files(pattern="b.csv").for_cycle()
    assert [row["id"] for row in drain(cycle, positions)] == [1]
    assert [row["id"] for row in drain(others, {})] == [1, 2]
    log.append("a.csv", " a row\n3,and half of")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    assert cycle.pending(positions) == []
    monkeypatch.setattr(time, "time", lambda: now)
    log.append("a.csv", " another\n")
    assert [row["text"] for row in drain(files, positions)] == ["half of a row", "and half of another"]


def test_files_of_one_cycle_tell_what_cannot_be_listed_each_time(log) -> None:
    log.write("a.jsonl", _jsonl(ROWS))
    (log.folder / "outside.jsonl").symlink_to("/etc/hostname")
    cycle = log.files().for_cycle()
    for _ in range(2):
        with pytest.raises(SourceError, match="outside"):
            cycle.pending({})

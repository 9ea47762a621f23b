"""What cannot be read costs itself alone where the source is told to go on, and stops it with a name otherwise."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import SourceError
from opmon.sources.files import Files

HOUR = 3600


def outcome(files: Files) -> tuple[dict[int, Any], dict[str, int]]:
    """Every row of the column x that can be read, by its number, and why the others cannot; of a single slice."""
    (piece,) = files.pending({})
    rows: dict[int, Any] = {}
    lost: dict[str, int] = {}
    for batch in files.read([piece]):
        rows |= {batch.first_row + i: row["x"] for i, row in enumerate(batch.rows.to_pylist())}
        lost |= batch.unreadable
    assert len(rows) + sum(lost.values()) == piece.rows
    fetched = files.fetch([piece], {0: list(rows)})
    assert fetched["x"].to_pylist() == list(rows.values())
    return rows, lost


BAD_ROWS = {
    "a.csv": [b"3,4", b'"a\xffb"', b"a\x00b", b'"' + b"y" * 3000 + b'"', b"abc"],
    "a.jsonl": [b'{"x": ', b'{"x": "\xff"}', b"[1]", b'{"x": "' + b"y" * 3000 + b'"}', b'{"x": "abc"}', b'{"x": 1,}'],
}


@pytest.mark.parametrize(("name", "bad"), [(name, bad) for name, rows in BAD_ROWS.items() for bad in rows])
def test_a_bad_row_costs_itself_alone(log, name, bad) -> None:
    form = (lambda i: b"%d" % i) if name == "a.csv" else (lambda i: b'{"x": %d}' % i)
    rows = [form(i) for i in range(3000)]
    rows[1] = rows[2500] = bad
    log.write(name, (b"x\n" if name == "a.csv" else b"") + b"\n".join(rows) + b"\n")
    options = {"types": {"x": "int64"}, "max_row_bytes": 2000}
    found, lost = outcome(log.files(broken="skip", **options))
    assert found == {i: i for i in range(3000) if i not in (1, 2500)}
    ((reason, count),) = lost.items()
    assert count == 2
    assert reason.startswith(f"{name}, line {3 if name == 'a.csv' else 2}: ")
    stopping = log.files(**options)
    with pytest.raises(SourceError) as raised:
        list(stopping.read(stopping.pending({})))
    assert str(raised.value).startswith(reason)
    assert str(raised.value).endswith("To go on without it, say 'broken: skip' in the source")


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_bad_row_is_found_before_a_round_takes_it(log, name, packed) -> None:
    head = "x,y\n1,1\n" if name == "a.csv" else '{"x": 1}\n'
    bad = "3,4,5\n" if name == "a.csv" else '{"x": 1,}\n'
    content = (head + bad).encode()
    log.write(name + ".gz" * packed, gzip.compress(content) if packed else content)
    with pytest.raises(SourceError, match=f"line {3 if name == 'a.csv' else 2}"):
        log.files().pending({})


def test_a_bad_row_far_into_a_file_is_found_before_a_round_takes_it(log) -> None:
    log.write("a.csv", b"x,y\n" + b"1,abc\n" * 200_000 + b"1,caf\xe9\n" + b"1,a\n" * 1000)
    with pytest.raises(SourceError, match=r"a\.csv, line 200002: the row is not UTF-8: byte 0xe9"):
        log.files().pending({})


def test_a_bad_row_of_an_earlier_round_does_not_stop_the_next(log, drain) -> None:
    log.write("a.jsonl", '{"x": 1}\n{"x": 1,}\n')
    positions: dict[str, str] = {}
    assert drain(log.files(broken="skip"), positions) == [{"x": 1}]
    log.append("a.jsonl", '{"x": 3}\n')
    assert drain(log.files(), positions) == [{"x": 3}]


def damaged_group(log: Any) -> None:
    pixels = pa.FixedSizeListArray.from_arrays(np.random.default_rng(0).random(3000 * 8), 8)
    pq.write_table(pa.table({"x": list(range(3000)), "pixels": pixels}), log.folder / "a.parquet", row_group_size=1000)
    content = bytearray((log.folder / "a.parquet").read_bytes())
    middle = pq.ParquetFile(log.folder / "a.parquet").metadata.row_group(1).column(0).data_page_offset
    content[middle : middle + 200] = b"\xff" * 200
    (log.folder / "a.parquet").write_bytes(content)


def test_a_damaged_row_group_costs_itself_alone(log) -> None:
    damaged_group(log)
    found, lost = outcome(log.files(broken="skip"))
    assert found == {i: i for i in (*range(1000), *range(2000, 3000))}
    ((reason, count),) = lost.items()
    assert (reason.startswith("a.parquet cannot be read"), count) == (True, 1000)
    with pytest.raises(SourceError, match=r"a\.parquet cannot be read"):
        outcome(log.files())


def test_a_value_of_parquet_that_is_not_of_the_type_stated_costs_its_row_alone(log) -> None:
    log.write("a.parquet", {"x": ["1.5", "2", "n/a", "4"] * 500})
    found, lost = outcome(log.files(types={"x": "float64"}, broken="skip"))
    assert list(found.items())[:4] == [(0, 1.5), (1, 2.0), (3, 4.0), (4, 1.5)]
    assert list(lost.values()) == [500]


REPLACED: dict[str, Callable[[Any], object]] = {
    "b.csv": lambda log: log.write("b.csv", "x\n9\n9\n9\n"),
    "b.jsonl": lambda log: log.write("b.jsonl", '{"x": 9}\n'),
    "b.parquet": lambda log: log.write("b.parquet", {"x": [9]}),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_file_that_is_replaced_under_a_round_costs_its_own_rows(log, name) -> None:
    log.write("a.csv", "x\n1\n2\n", age=9)
    log.write(name, {"b.csv": "x\n3\n4\n", "b.jsonl": '{"x": 3}\n{"x": 4}\n'}.get(name, {"x": [3, 4]}))
    files = log.files(broken="skip")
    slices = files.pending({})
    REPLACED[name](log)
    batches = list(files.read(slices))
    assert [row["x"] for batch in batches for row in batch.rows.to_pylist()] == [1, 2]
    ((reason, count),) = batches[-1].unreadable.items()
    assert (name in reason, batches[-1].slice_index, count) == (True, 1, 2)
    with pytest.raises(SourceError, match="opmon rounds reopen"):
        list(log.files().read(slices))
    with pytest.raises(SourceError, match=name):
        list(files.read(slices[1:]))


def test_a_file_that_is_gone_is_waited_for(log) -> None:
    log.write("a.csv", "x\n1\n", age=9)
    path = log.write("b.csv", "x\n2\n")
    files = log.files(broken="skip")
    slices = files.pending({})
    path.rename(log.folder / "_away")
    with pytest.raises(SourceError, match=r"b\.csv is gone"):
        list(files.read(slices))
    (log.folder / "_away").rename(path)
    assert [batch.rows.to_pylist() for batch in files.read(slices)] == [[{"x": 1}], [{"x": 2}]]


# files that do not go together


def test_conflicts_are_found_before_a_round_takes_them(log, rows_of) -> None:
    log.write("a.parquet", {"x": [1, 2]}, age=9)
    log.write("b.parquet", {"x": ["3", "4"]}, age=8)
    with pytest.raises(SourceError, match=r"'x' is int64 in a\.parquet and string in b\.parquet.*types: {x: string}"):
        log.files().pending({})
    stated = log.files(types={"x": "float64"})
    assert [row["x"] for row in rows_of(stated, stated.pending({}))] == [1.0, 2.0, 3.0, 4.0]
    files = log.files(broken="skip")
    assert [piece.part for piece in files.pending({})] == ["a.parquet"]


def test_types_settle_a_conflict_in_a_round_that_is_open(log, rows_of) -> None:
    log.write("a.parquet", {"x": [1, 2]}, age=9)
    log.write("b.parquet", {"x": ["3", "4"]}, age=8)
    slices = [log.files(pattern=name).pending({})[0] for name in ("a*", "b*")]
    with pytest.raises(SourceError, match="one round cannot hold both"):
        rows_of(log.files(), slices)
    assert [row["x"] for row in rows_of(log.files(types={"x": "string"}), slices)] == ["1", "2", "3", "4"]
    batches = list(log.files(broken="skip").read(slices))
    assert [batch.rows.num_rows for batch in batches] == [2, 0]
    assert list(batches[-1].unreadable.values()) == [2]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"x": [[1.0]]}, "x\n1\n"),
        ({"x": [1]}, '{"x": [1]}\n'),
        ('{"x": [1]}\n', '{"x": 1}\n'),
        ('{"x": {"k": 1}}\n', '{"x": [1]}\n'),
    ],
    ids=["parquet and csv", "parquet and jsonl", "lists and numbers", "objects and lists"],
)
def test_lists_and_single_values_do_not_go_together(log, first, second) -> None:
    names = [
        f"{i}.{'parquet' if isinstance(c, dict) else 'jsonl' if c[0] == '{' else 'csv'}"
        for i, c in enumerate((first, second))
    ]
    for age, name, content in zip((9, 8), names, (first, second), strict=True):
        log.write(name, content, age=age)
    with pytest.raises(SourceError, match=r"'x' is .* in 0.* and .* in 1.*: one round cannot hold both"):
        log.files().pending({})


def test_a_type_that_no_value_of_a_file_can_have_is_told(log) -> None:
    log.write("a.parquet", {"x": [[1.0]]})
    with pytest.raises(SourceError, match=r"'x' is list<.*> in a\.parquet and cannot be read as double, which types"):
        log.files(types={"x": "float64"}).pending({})


def test_files_that_go_with_no_other_do_not_take_the_room_of_those_that_do(log) -> None:
    log.write("a.parquet", {"x": [1] * 10}, age=9)
    for i in range(5):
        log.write(f"b{i}.parquet", {"x": ["one"] * 10}, age=8)
    log.write("c.parquet", {"x": [2] * 10}, age=7)
    slices = log.files(broken="skip").pending({}, 20)
    assert [(piece.part, piece.rows) for piece in slices] == [("a.parquet", 10), ("c.parquet", 10)]


# names, links, times


def test_what_has_no_name_or_leads_nowhere_does_not_stop_the_others(log, caplog) -> None:
    log.write("a.csv", "x\n1\n")
    log.write(os.fsdecode(b"caf\xe9.csv"), "x\n2\n")
    log.write(os.fsdecode(b"na\xefve/b.csv"), "x\n3\n")
    log.write("/".join(["deep" * 20] * 13) + "/c.csv", "x\n4\n")
    for name in ("loop.csv", "loop"):
        (log.folder / name).symlink_to(name)
    (log.folder / "ping").symlink_to("pong")
    (log.folder / "pong").symlink_to("ping")
    (log.folder / "out.csv").symlink_to(log.folder.parent / "secret.csv")
    (log.folder.parent / "secret.csv").write_text("x\n5\n")
    assert [piece.part for piece in log.files(broken="skip").pending({})] == ["a.csv"]
    assert caplog.text.count("left out:") == 1
    assert "and 1 more" in caplog.text
    with pytest.raises(SourceError, match=r"not UTF-8|leaves the folder|has a path of"):
        log.files().pending({})


def test_loops_of_links_alone_stop_nothing(log) -> None:
    log.write("a.csv", "x\n1\n")
    for name in ("loop.csv", "loop"):
        (log.folder / name).symlink_to(name)
    assert [piece.part for piece in log.files().pending({})] == ["a.csv"]


def test_a_path_that_is_a_loop_of_links_is_told(log) -> None:
    (log.folder / "loop").symlink_to("loop")
    with pytest.raises(SourceError, match="loop"):
        Files(str(log.folder / "loop")).pending({})


def test_a_file_that_became_a_loop_of_links_is_waited_for(log) -> None:
    path = log.write("a.csv", "x\n1\n")
    slices = log.files(broken="skip").pending({})
    path.unlink()
    path.symlink_to("a.csv")
    with pytest.raises(SourceError, match=r"a\.csv"):
        list(log.files(broken="skip").read(slices))


@pytest.mark.parametrize("modified", [-1_000_000_000, 0, 4_000_000_000])
def test_times_of_files_may_be_wrong(log, drain, modified) -> None:
    path = log.write("a.csv", "x\n1\n2")
    os.utime(path, (modified, modified))
    positions: dict[str, str] = {}
    (piece,) = log.files().pending(positions)
    assert piece.arrived_at.timestamp() == max(0, modified)
    assert drain(log.files(), positions) == [{"x": 1}, {"x": 2}]
    log.append("a.csv", "\n3\n")
    assert drain(log.files(), positions) == [{"x": 3}]


# files that are being written


@pytest.mark.parametrize("kept", [1, 9, 15, 30, 0.5])
@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz"])
def test_a_gzip_file_that_is_being_written_is_waited_for(log, drain, name, kept) -> None:
    rows = [f'{{"x": {i}}}' for i in range(5000)] if name == "a.jsonl.gz" else ["x", *map(str, range(5000))]
    packed = gzip.compress("\n".join([*rows, ""]).encode())
    log.write(name, packed[: kept if kept >= 1 else int(kept * len(packed))])
    assert log.files().pending({}) == []
    log.age(name, 2 * HOUR)
    with pytest.raises(SourceError, match=r"a\..*\.gz cannot be read"):
        log.files().pending({})
    assert log.files(broken="skip").pending({}) == []
    log.write(name, packed)
    assert len(drain(log.files(), {})) == 5000


def test_a_gzip_file_that_is_damaged_under_a_round_costs_itself_alone(log) -> None:
    log.write("a.csv", "x\n1\n", age=9)
    path = log.write("b.csv.gz", gzip.compress(("x\n" + "".join(f"{i}\n" for i in range(5000))).encode()))
    files = log.files(broken="skip")
    slices = files.pending({})
    content = bytearray(path.read_bytes())
    content[2000:2100] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"b\.csv\.gz"):
        list(log.files().read(slices))
    batches = list(files.read(slices))
    assert [batch.rows.num_rows for batch in batches] == [1, 0]
    assert list(batches[1].unreadable.values()) == [5000]


def test_an_open_quote_at_the_end_costs_what_it_holds(log, drain, caplog) -> None:
    log.write("a.csv", 'x,y\n1,2\n3,"open\n4,5\n', age=2 * HOUR)
    with pytest.raises(SourceError, match=r"a\.csv, line 3: the last row is not whole"):
        log.files().pending({})
    positions: dict[str, str] = {}
    assert drain(log.files(broken="skip"), positions) == [{"x": 1, "y": 2}]
    assert "a.csv, line 3: the last row is not whole" in caplog.text, "what was not read is told"
    (flaw,) = log.files(broken="quarantine").flaws(positions)
    assert (flaw.part, flaw.why.split(":")[0]) == ("a.csv", "a.csv, line 3")
    assert log.files(broken="quarantine").flaws({"a.csv": flaw.passing}) == []
    log.append("a.csv", '6"\n7,8\n')
    assert drain(log.files(), {"a.csv": flaw.passing}) == [{"x": 3, "y": "open\n4,5\n6"}, {"x": 7, "y": "8"}]


def test_flaws_are_looked_for_as_far_as_a_round_reaches(log) -> None:
    for number in range(4):
        log.write(f"{number}.jsonl", '{"x": 1}\n' * 10, age=100 - number)
    log.write("4.parquet", b"PAR1" + bytes(100) + b"PAR1")
    files = log.files(broken="quarantine")
    assert files.flaws({}, 30) == []
    assert [flaw.part for flaw in files.flaws({}, 50)] == [flaw.part for flaw in files.flaws({})] == ["4.parquet"]


def test_a_file_that_goes_with_no_other_is_not_set_aside_but_waits(log, drain) -> None:
    log.write("a.jsonl", '{"x": 1}\n', age=100)
    log.write("b.jsonl", '{"x": [1]}\n')
    files = log.files(broken="quarantine")
    assert [piece.part for piece in files.pending({})] == ["a.jsonl"]
    assert files.flaws({}) == [], "nothing is wrong with it"
    assert drain(files, {}) == [{"x": 1}, {"x": [1]}]


def test_a_row_of_a_gigabyte_costs_itself_alone(log, drain) -> None:
    """Scaled down: the same proportions to the limit and to what is read at a time."""
    log.write("a.jsonl", '{"x": 1}\n{"x": "' + "y" * 20_000_000 + '"}\n{"x": 3}\n{"x": "' + "y" * 9_000_000)
    files = log.files(broken="skip", max_row_bytes=1_000_000)
    positions: dict[str, str] = {}
    assert drain(files, positions, 2) == [{"x": 1}, {"x": 3}]
    log.append("a.jsonl", '"}\n{"x": 5}\n')
    assert drain(files, positions) == [{"x": 5}]
    assert files.pending(positions) == []


def test_an_open_quote_ends_with_the_line_on_which_the_row_is_too_long(log, drain) -> None:
    log.write("a.csv", 'x,y\n1,2\n3,"open\n' + "".join(f"{i},{i}\n" for i in range(4, 2000)))
    files = log.files(broken="skip", max_row_bytes=1000)
    found = drain(files, {}, 100)
    assert found[0] == {"x": 1, "y": 2}
    assert [row["x"] for row in found[1:]] == list(range(found[1]["x"], 2000))
    assert 50 < found[1]["x"] < 300


def test_rows_of_json_are_the_same_in_rounds_and_at_once(log, drain) -> None:
    rows = [f'{{"x": {i}}}' if i % 7 else "rubbish" for i in range(100)]
    log.write("a.jsonl", "\n".join(rows) + "\n")
    whole = drain(log.files(broken="skip"), {})
    assert whole == [json.loads(row) for row in rows if row != "rubbish"]
    for limit in (1, 3, 50):
        assert drain(log.files(broken="skip"), {}, limit) == whole

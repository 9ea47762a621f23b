"""Files as production really writes them: half written, rewritten, broken, huge."""

from __future__ import annotations

import gzip
import os
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import SourceError

HOUR = 3600


def test_text_last_line_without_newline_waits_until_the_file_settled(log, drain) -> None:
    log.write("a.jsonl", '{"x": 1}\n{"x": 2')
    positions: dict[str, str] = {}
    assert drain(log.files(), positions) == [{"x": 1}]
    log.append("a.jsonl", "2}")
    assert drain(log.files(), positions) == []
    log.age("a.jsonl", 100)
    assert drain(log.files(), positions) == [{"x": 22}]
    log.append("a.jsonl", '\n{"x": 3}\n')
    assert drain(log.files(), positions) == [{"x": 3}]


def test_text_row_that_went_on_after_it_was_taken_is_an_error(log, drain) -> None:
    log.write("a.csv", "x\n1\n2", age=100)
    positions: dict[str, str] = {}
    assert drain(log.files(), positions) == [{"x": 1}, {"x": 2}]
    log.append("a.csv", "5\n")
    with pytest.raises(SourceError, match=r"a\.csv, line 3.*settle_seconds"):
        log.files().pending(positions)


def test_text_that_grows_goes_on_where_it_stopped(log, drain) -> None:
    log.write("a.csv", "id,name\n1,a\n")
    positions: dict[str, str] = {}
    assert drain(log.files(), positions) == [{"id": 1, "name": "a"}]
    log.append("a.csv", "2,b\n3,c\n")
    assert drain(log.files(), positions) == [{"id": 2, "name": "b"}, {"id": 3, "name": "c"}]


def test_text_rows_of_a_file_that_grows_arrived_after_it_was_last_read(log, drain) -> None:
    log.write("a.csv", "x\n1\n", age=500)
    positions: dict[str, str] = {}
    drain(log.files(), positions)
    log.append("a.csv", "2\n")
    (piece,) = log.files().pending(positions)
    assert piece.arrived_at.timestamp() < (log.folder / "a.csv").stat().st_mtime - 400


def test_text_header_alone_is_nothing_yet(log) -> None:
    log.write("a.csv", "id,name\n")
    log.write("b.csv", "id,name", age=100)
    log.write("c.csv", "")
    log.write("d.jsonl", "\n\n  \n", age=100)
    assert log.files().pending({}) == []


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_text_that_shrank_is_an_error_that_says_what_to_do(log, drain, name) -> None:
    content = "x\n1\n2\n" if name == "a.csv" else '{"x":1}\n{"x":2}\n'
    log.write(name, content)
    positions: dict[str, str] = {}
    drain(log.files(), positions)
    log.write(name, content[: len(content) // 2])
    with pytest.raises(SourceError, match=f"{name}: the file shrank.*another name"):
        log.files().pending(positions)


def test_text_that_was_rewritten_is_an_error(log, drain) -> None:
    log.write("a.csv", "x\n1\n2\n")
    positions: dict[str, str] = {}
    drain(log.files(), positions)
    log.write("a.csv", "x\n1\n3\n4\n")
    with pytest.raises(SourceError, match=r"a\.csv: the file was rewritten"):
        log.files().pending(positions)


def test_text_that_was_touched_only_is_fine(log, drain) -> None:
    log.write("a.csv", "x\n1\n2\n")
    positions: dict[str, str] = {}
    drain(log.files(), positions)
    log.age("a.csv", 5)
    assert log.files().pending(positions) == []


def test_rows_of_a_file_that_is_gone_are_an_error(log) -> None:
    path = log.write("a.csv", "x\n1\n")
    slices = log.files().pending({})
    path.unlink()
    with pytest.raises(SourceError, match=r"a\.csv is gone"):
        list(log.files().read(slices))


def test_rows_that_were_changed_after_the_round_was_opened_are_an_error(log) -> None:
    log.write("a.csv", "x\n1\n2\n")
    slices = log.files().pending({})
    log.write("a.csv", "x\n\n\n\n\n")
    with pytest.raises(SourceError, match=r"a\.csv"):
        list(log.files().read(slices))


def test_parquet_that_was_written_again_is_an_error(log, drain) -> None:
    log.write("a.parquet", {"x": [1, 2]})
    positions: dict[str, str] = {}
    slices = log.files().pending({})
    drain(log.files(), positions)
    log.write("a.parquet", {"x": [1, 2, 3]})
    with pytest.raises(SourceError, match=r"a\.parquet: the Parquet file was written again"):
        log.files().pending(positions)
    with pytest.raises(SourceError, match=r"a\.parquet: the Parquet file was written again"):
        list(log.files().read(slices))


def test_parquet_without_footer_waits_and_is_an_error_once_it_is_old(log) -> None:
    whole = log.write("b.parquet", {"x": list(range(1000))}).read_bytes()
    log.write("a.parquet", whole[:-20])
    assert [piece.part for piece in log.files().pending({})] == ["b.parquet"]
    log.age("a.parquet", 2 * HOUR)
    with pytest.raises(SourceError, match=r"a\.parquet is not a whole Parquet file.*no footer"):
        log.files().pending({})


def test_parquet_without_rows_gives_no_slice(log) -> None:
    log.write("a.parquet", {"x": pa.array([], pa.int64())})
    assert log.files().pending({}) == []


@pytest.mark.parametrize(
    "content",
    [
        os.urandom(5000),
        b"PAR1" + b"\0" * 100 + struct.pack("<I4s", 50, b"PAR1"),
        b"PAR1" + struct.pack("<I4s", 2**31, b"PAR1"),
        b"",
        b"PAR1",
    ],
    ids=["random", "zeros", "huge footer", "empty", "magic alone"],
)
def test_parquet_garbage_is_an_error_that_names_the_file(log, content) -> None:
    log.write("a.parquet", content, age=2 * HOUR)
    with pytest.raises(SourceError, match=r"a\.parquet"):
        log.files().pending({})


def test_parquet_damaged_in_the_middle_is_an_error_that_names_the_file(log) -> None:
    path = log.write("a.parquet", {"x": [str(i) * 20 for i in range(5000)]})
    content = bytearray(path.read_bytes())
    content[100:4000] = os.urandom(3900)
    path.write_bytes(content)
    slices = log.files().pending({})
    with pytest.raises(SourceError, match=r"a\.parquet"):
        list(log.files().read(slices))


def test_parquet_columns_of_the_same_name_are_an_error(log) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(table, log.folder / "a.parquet")
    with pytest.raises(SourceError, match="'x' more than once"):
        list(log.files().read(log.files().pending({})))


def test_broken_file_is_left_out_where_that_is_asked_for(log, caplog) -> None:
    log.write("a.parquet", os.urandom(100), age=2 * HOUR)
    log.write("b.csv", "x\n1\n")
    assert [piece.part for piece in log.files(broken="skip").pending({})] == ["b.csv"]
    assert "a.parquet" in caplog.text


def test_gzip_cut_short_waits_and_is_an_error_once_it_is_old(log) -> None:
    packed = gzip.compress(b"x\n" + b"".join(b"%d\n" % i for i in range(50_000)))
    log.write("a.csv.gz", packed[: len(packed) // 2])
    assert log.files().pending({}) == []
    log.age("a.csv.gz", 2 * HOUR)
    with pytest.raises(SourceError, match=r"a\.csv\.gz cannot be read"):
        log.files().pending({})


def test_gzip_garbage_is_an_error(log) -> None:
    log.write("a.csv.gz", b"this is not gzip", age=2 * HOUR)
    with pytest.raises(SourceError, match=r"a\.csv\.gz"):
        log.files().pending({})


def test_link_out_of_the_folder_is_an_error(log) -> None:
    secret = log.folder.parent / "secret.csv"
    secret.write_text("x\n1\n")
    (log.folder / "a.csv").symlink_to(secret)
    with pytest.raises(SourceError, match=r"a\.csv.*leaves the folder"):
        log.files().pending({})


def test_folder_link_out_of_the_folder_is_an_error(log) -> None:
    (log.folder / "b").symlink_to(log.folder.parent)
    with pytest.raises(SourceError, match=r"b in .* leaves the folder"):
        log.files().pending({})


def test_link_inside_of_the_folder_does_not_count_twice(log, drain) -> None:
    log.write("a.csv", "x\n1\n")
    (log.folder / "b.csv").symlink_to("a.csv")
    (log.folder / "again").symlink_to(log.folder)
    assert drain(log.files(), {}) == [{"x": 1}]


def test_link_to_a_hidden_file_of_the_folder_is_read(log, drain) -> None:
    log.write("..data/a.csv", "x\n1\n")
    (log.folder / "a.csv").symlink_to("..data/a.csv")
    assert drain(log.files(), {}) == [{"x": 1}]


def test_what_is_not_a_regular_file_is_left_alone(log) -> None:
    os.mkfifo(log.folder / "a.csv")
    (log.folder / "b.csv").mkdir()
    assert log.files().pending({}) == []


def test_broken_link_is_left_alone(log) -> None:
    (log.folder / "a.csv").symlink_to("gone.csv")
    assert log.files().pending({}) == []


def test_name_that_is_not_utf8_is_an_error(log) -> None:
    (log.folder / os.fsdecode(b"caf\xe9.csv")).write_text("x\n1\n")
    with pytest.raises(SourceError, match="not UTF-8"):
        log.files().pending({})


def test_row_beyond_the_limit_is_an_error_with_its_line(log) -> None:
    log.write("a.jsonl", '{"x": 1}\n{"x": "' + "y" * 10_000_000)
    with pytest.raises(SourceError, match=r"a\.jsonl, line 2.*max_row_bytes"):
        log.files(max_row_bytes=1_000_000).pending({})


def test_row_longer_than_a_block_is_read(log, drain) -> None:
    text = "y" * 9_000_000
    log.write("a.csv", f'id,x\n1,"{text}\n{text}"\n2,z\n')
    assert drain(log.files(), {}) == [{"id": 1, "x": f"{text}\n{text}"}, {"id": 2, "x": "z"}]

"""Columns in the folders' names, and logs that begin somewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import InputError, SourceError
from opmon.sources.files import Files
from opmon.testing import check_source
from opmon.types import Slice


def write(folder: Path, part: str, first: int = 0, rows: int = 10, **columns: Sequence[Any]) -> Path:
    path = folder / part
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": [f"r{first + k}" for k in range(rows)], **columns})
    if part.endswith(".parquet"):
        pq.write_table(table, path)
    else:
        path.write_text("".join(f'{{"id": "r{first + k}"}}\n' for k in range(rows)))
    at = 1_700_000_000 + first
    os.utime(path, (at, at))
    return path


def values(source: Files, name: str, slices: Sequence[Slice] | None = None) -> list[Any]:
    slices = source.pending({}) if slices is None else slices
    return [value for batch in source.read(slices, [name]) for value in batch.rows.column(name).to_pylist()]


@pytest.mark.parametrize("end", ["parquet", "jsonl"])
def test_folders_are_columns(tmp_path: Path, end: str) -> None:
    for number, country in enumerate(("DE", "AT", "A%20B", "__HIVE_DEFAULT_PARTITION__")):
        write(tmp_path, f"year=2026/country={country}/part.{end}", 10 * number)
    source = Files(str(tmp_path))
    expected = [each for country in ("DE", "AT", "A B", None) for each in [country] * 10]
    assert values(source, "country") == expected
    assert values(source, "year") == [2026] * 40
    table = pa.table({"id": [f"r{k}" for k in range(40)], "country": expected})
    check_source(source, table)
    slices = source.pending({})
    assert source.fetch(slices, {2: [3, 1], 0: [0]})["country"].to_pylist() == ["DE", "A B", "A B"]


def test_numbers_and_words_in_one_place_are_words(tmp_path: Path) -> None:
    write(tmp_path, "shard=1/a.parquet")
    write(tmp_path, "shard=x/b.parquet", 10)
    assert values(Files(str(tmp_path)), "shard") == ["1"] * 10 + ["x"] * 10
    assert values(Files(str(tmp_path), types={"shard": "string"}), "shard")[:1] == ["1"]


def test_a_column_of_the_file_is_the_files(tmp_path: Path) -> None:
    write(tmp_path, "country=DE/a.parquet", country=["XX"] * 10)
    assert values(Files(str(tmp_path)), "country") == ["XX"] * 10


@pytest.mark.parametrize("first", ["a", "c"])
def test_what_some_files_say_the_folder_says_for_the_others(tmp_path: Path, first: str) -> None:
    write(tmp_path, "country=DE/b.parquet", 10, country=["XX"] * 5 + [None] * 5)
    write(tmp_path, f"country=DE/{first}.parquet", 0 if first == "a" else 20)
    found = values(Files(str(tmp_path)), "country")
    assert (found[:10] if first == "a" else found[10:]) == ["DE"] * 10
    assert (found[10:] if first == "a" else found[:10]) == ["XX"] * 5 + [None] * 5


def test_what_the_folder_says_in_no_type_of_the_files_is_nothing(tmp_path: Path) -> None:
    write(tmp_path, "shard=x/a.parquet")
    write(tmp_path, "shard=7/b.parquet", 10, shard=[1.5] * 10)
    write(tmp_path, "shard=7/c.parquet", 20)
    assert values(Files(str(tmp_path)), "shard") == [None] * 10 + [1.5] * 10 + [7.0] * 10


def test_some_folders_and_none(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet")
    write(tmp_path, "country=DE/b.parquet", 10)
    assert values(Files(str(tmp_path)), "country") == [None] * 10 + ["DE"] * 10


def test_what_a_folder_cannot_be_read_as_is_told(tmp_path: Path) -> None:
    write(tmp_path, "shard=x/a.parquet")
    with pytest.raises((SourceError, InputError), match="shard"):
        values(Files(str(tmp_path), types={"shard": "int64"}), "shard")


def test_since_a_date_older_files_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "old.parquet")
    write(tmp_path, "new.parquet", 1000)
    since = datetime.fromtimestamp(1_700_000_500, UTC).isoformat()
    source = Files(str(tmp_path), since=since)
    assert [piece.part for piece in source.pending(source.begins())] == ["new.parquet"]


def test_since_now_begins_behind_what_is_there_and_forgets_it_never(tmp_path: Path) -> None:
    source = Files(str(tmp_path), since="now")
    first = source.begins()
    assert first, "it is kept even where there is nothing"
    write(tmp_path, "a.parquet")
    assert [piece.part for piece in source.pending(first)] == ["a.parquet"], "it came after"
    begun = Files(str(tmp_path), since="now").begins()
    write(tmp_path, "b.jsonl", 10)
    assert [piece.part for piece in source.pending(begun)] == ["b.jsonl"]


def test_since_now_a_file_that_grows_is_read_from_where_it_was(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl")
    source = Files(str(tmp_path), since="now")
    begun = source.begins()
    assert source.pending(begun) == []
    with path.open("a") as stream:
        stream.write('{"id": "new"}\n')
    assert values(source, "id", source.pending(begun)) == ["new"]


@pytest.mark.parametrize("since", ["now", "2026-03-01"])
def test_since_passes_old_files_over_whatever_their_columns_are(tmp_path: Path, since: str) -> None:
    long_ago = datetime(2026, 2, 1, tzinfo=UTC).timestamp()
    for place, column in enumerate(([2139], ["SW1A"], [2139.5], [{"code": 1}])):
        pq.write_table(pa.table({"zip": column}), tmp_path / f"{place}.parquet")
        os.utime(tmp_path / f"{place}.parquet", (long_ago + place, long_ago + place))
    source = Files(str(tmp_path), since=since)
    begins = source.begins()
    assert source.pending(begins) == []
    pq.write_table(pa.table({"zip": ["N1"]}), tmp_path / "new.parquet")
    assert [piece.part for piece in source.pending(begins)] == ["new.parquet"]


def test_since_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="since must be a date"):
        Files("logs", since="yesterday")


def test_a_column_of_the_file_is_no_constant_of_its_folder(tmp_path: Path) -> None:
    write(tmp_path, "country=DE/day=3/a.parquet", country=["XX"] * 10)
    source = Files(str(tmp_path))
    (piece,) = source.pending({})
    assert source.constants(piece) == {"day": 3}

"""Hostile inputs by name: each puts something into a log, waits until it was met, and then mends or gives up.

A case is a generator. What it writes before its ``yield`` is met by cycles of a monitor; what it does after it mends
the log. ``yield OPEN`` lets a round open and nothing more, so that the log can change under a round that has begun.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OPEN = "open"
MODES = ("stop", "skip", "quarantine")
FEATURES = ("x0", "x1", "x2", "x3")
HOUR = 3600.0

Steps = Iterator[str | None]


@dataclass
class Log:
    """A log of production: what is written to it, and what must come of it."""

    folder: Path
    mode: str
    store: str | None = None
    """The URL of an empty bucket, for the cases that need one."""
    named: str = ""
    """What a message about it must name."""
    damaged: int = 0
    """Rows that are lost for good, and must be counted as such."""
    at_once: bool = True
    """Whether the good files go on before the log is mended, where the mode lets them."""
    source: dict[str, Any] = field(default_factory=dict)
    monitor: dict[str, Any] = field(default_factory=dict)
    clock_seconds: float = 0.0
    good: list[Callable[[], pa.Array]] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    """Parts to forget once they were met, with ``quarantine``."""
    abandoned: list[int] = field(default_factory=list)
    """Rounds to give up when the log is mended."""

    @property
    def stops(self) -> bool:
        return self.mode == "stop"

    def rows(self, first: int, count: int, **columns: Any) -> pa.Table:
        """Rows of which each must be taken once."""
        made = table(first, count, **columns)
        self.good.append(lambda: made["input_id"].combine_chunks())
        return made

    def parquet(self, part: str, rows: pa.Table, age: float = 2 * HOUR, **options: Any) -> bytes:
        path = self.at(part)
        pq.write_table(rows, path, **options)
        self.age(part, age)
        return path.read_bytes()

    def jsonl(self, part: str, rows: pa.Table, more: bytes = b"", age: float = 2 * HOUR) -> bytes:
        return self.write(part, lines(rows) + more, age)

    def write(self, part: str, content: bytes, age: float = 2 * HOUR) -> bytes:
        self.at(part).write_bytes(content)
        self.age(part, age)
        return content

    def at(self, part: str) -> Path:
        path = self.folder / part
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def age(self, part: str, seconds: float) -> None:
        moment = time.time() - seconds
        os.utime(self.folder / part, (moment, moment))

    def put(self, part: str, content: bytes) -> None:
        """An object of the store: keys of any kind, which no library of files would write."""
        _store().put_object(Bucket=str(self.store).removeprefix("s3://"), Key=f"log/{part}", Body=content)

    def remove(self, part: str) -> None:
        _store().delete_object(Bucket=str(self.store).removeprefix("s3://"), Key=f"log/{part}")


@functools.cache
def _store() -> Any:
    """Whoever may write to the store: what somebody owns is replaced by nobody else."""
    import boto3

    return boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])


@dataclass(frozen=True)
class Case:
    """A hostile input."""

    name: str
    steps: Callable[[Log], Steps]
    modes: Sequence[str]
    large: bool
    stored: bool


CASES: dict[str, Case] = {}


def case(
    *modes: str, large: bool = False, stored: bool = False
) -> Callable[[Callable[[Log], Steps]], Callable[[Log], Steps]]:
    """Adds a case by its function's name; ``modes``: those of ``broken`` in which it is run, or all."""

    def added(steps: Callable[[Log], Steps]) -> Callable[[Log], Steps]:
        CASES[steps.__name__] = Case(steps.__name__, steps, modes or MODES, large, stored)
        return steps

    return added


def table(first: int, count: int, **columns: Any) -> pa.Table:
    rng = np.random.default_rng(first)
    numbers = {name: rng.normal(size=count).round(6) for name in FEATURES}
    return pa.table({"input_id": [f"r{first + k}" for k in range(count)], **numbers} | columns)


def lines(rows: pa.Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows.to_pylist()).encode()


def csv(rows: pa.Table) -> bytes:
    body = "".join(",".join(map(str, row.values())) + "\n" for row in rows.to_pylist())
    return (",".join(rows.schema.names) + "\n" + body).encode()


def one(number: int, **values: Any) -> dict[str, Any]:
    return {"input_id": f"bad{number}", **dict.fromkeys(FEATURES, 0.5), **values}


def bad_row(log: Log, part: str, row: bytes, kind: str = "jsonl") -> Steps:
    """A row that no reader can take, between good ones: it costs itself, or is taken out by hand."""
    log.named = part
    write = lines if kind == "jsonl" else csv
    log.jsonl("good.jsonl", log.rows(1000, 20))
    first, second = write(log.rows(0, 30)), write(log.rows(30, 30))
    second = second if kind == "jsonl" else second.partition(b"\n")[2]
    log.write(part, first + row + second)
    yield None
    if log.stops:
        log.write(part, first + second)
    else:
        log.damaged = 1


# rows of text


@case()
def json_nested_100000_deep(log: Log) -> Steps:
    yield from bad_row(log, "a.jsonl", b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n")


@case()
def json_lists_nested_100000_deep(log: Log) -> Steps:
    yield from bad_row(log, "a.jsonl", b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")


@case()
def json_that_is_no_object(log: Log) -> Steps:
    yield from bad_row(log, "a.jsonl", b"[1, 2, 3]\n")


@case()
def json_with_a_nul_byte(log: Log) -> Steps:
    yield from bad_row(log, "a.jsonl", b'{"input_id": "bad", "x0": \0}\n')


@case()
def bytes_that_are_not_utf8(log: Log) -> Steps:
    yield from bad_row(log, "a.jsonl", b'{"input_id": "caf\xe9"}\n')


@case()
def csv_bytes_that_are_not_utf8(log: Log) -> Steps:
    yield from bad_row(log, "a.csv", b"caf\xe9,1,2,3,4\n", "csv")


@case()
def csv_row_with_too_many_cells(log: Log) -> Steps:
    yield from bad_row(log, "a.csv", b"bad,1,2,3,4,5,6,7\n", "csv")


@case()
def json_number_beyond_all_bounds(log: Log) -> Steps:
    """An input of 1e400 is infinite: it is read, and the model cannot be run on it."""
    log.jsonl("a.jsonl", log.rows(0, 30), json.dumps(one(1)).replace("0.5", "1e400", 1).encode() + b"\n")
    log.damaged = 1
    yield None


@case()
def type_that_changes_in_the_middle(log: Log) -> Steps:
    bad = json.dumps(one(1, x0="four")).encode() + b"\n"
    log.named = "a.jsonl"
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    log.write("a.jsonl", lines(log.rows(0, 5000)) + bad + lines(log.rows(5000, 100)))
    log.damaged = 1
    yield None


@case()
def types_of_two_files_that_conflict(log: Log) -> Steps:
    """Where the rest goes on, the other file gets a round of its own, which is told and can be given up."""
    log.named, log.at_once = "x0", False
    log.parquet("a.parquet", log.rows(0, 30), age=3 * HOUR)
    log.parquet("b.parquet", table(30, 30, x0=[[1.0]] * 30))
    yield None
    if not log.stops:
        log.abandoned.append(2)
    log.parquet("b.parquet" if log.stops else "c.parquet", log.rows(30, 30), age=1)


@case("stop", "skip")
def where_on_a_column_that_changes_its_type(log: Log) -> Steps:
    """A file of numbers and one in which the same column is text: the condition means the same in both."""
    log.monitor["inputs"] = {"features": list(FEATURES), "where": "age >= 18"}
    ages = [9, 18, 100] * 10
    numbers, words = table(0, 30, age=ages), table(30, 30, age=[str(age) for age in ages[:-3]] + ["old"] * 3)
    log.write("a.csv", csv(numbers), age=3 * HOUR)
    log.write("b.csv", csv(words))
    ids = [f"r{k}" for k in range(57) if ages[k % 30] >= 18]
    log.good.append(lambda: pa.array(ids))
    yield None


@case("stop", "skip")
def where_on_a_column_that_some_files_lack(log: Log) -> Steps:
    log.monitor["inputs"] = {"features": list(FEATURES), "where": "country == 'DE'"}
    log.parquet("a.parquet", log.rows(0, 30, country=["DE"] * 30), age=3 * HOUR)
    log.parquet("b.parquet", table(30, 30))
    yield None


@case("stop", "skip")
def where_on_a_column_that_is_gone(log: Log) -> Steps:
    log.monitor["inputs"] = {"features": list(FEATURES), "where": "country == 'DE'"}
    log.named, log.at_once = "country", False
    log.parquet("a.parquet", table(0, 30))
    rows = log.rows(0, 30, country=["DE"] * 30)
    yield None
    log.parquet("a.parquet", rows)


@case("stop", "skip")
def where_on_a_column_of_lists(log: Log) -> Steps:
    log.monitor["inputs"] = {"features": list(FEATURES), "where": "age >= 18"}
    log.named, log.at_once = "age", False
    log.parquet("a.parquet", table(0, 30, age=[[18]] * 30))
    rows = log.rows(0, 30, age=[18] * 30)
    yield None
    log.parquet("a.parquet", rows)


@case()
def keys_that_change_from_row_to_row(log: Log) -> Steps:
    log.named = "a.jsonl"
    log.jsonl("good.jsonl", log.rows(0, 30))
    log.write("a.jsonl", "".join(json.dumps({f"user-{k}": 1, "n": k}) + "\n" for k in range(60_000)).encode())
    yield None
    log.jsonl("a.jsonl", log.rows(100, 30))


@case()
def files_without_rows(log: Log) -> Steps:
    log.write("a.csv", b"")
    log.write("b.jsonl", b"\n \n\n")
    log.write("c.csv", b"input_id,x0,x1,x2,x3\n")
    log.parquet("d.parquet", table(0, 0))
    log.jsonl("e.jsonl", log.rows(0, 30))
    yield None


@case()
def utf16(log: Log) -> Steps:
    log.named = "a.csv"
    log.jsonl("good.jsonl", log.rows(0, 30))
    rows = csv(log.rows(100, 30))
    log.write("a.csv", rows.decode().encode("utf-16"))
    yield None
    if log.mode == "skip":  # rows of it may have been taken: written anew it is another file
        log.at("a.csv").unlink()
    log.write("b.csv" if log.mode == "skip" else "a.csv", rows)


@case()
def last_line_half_written(log: Log) -> Steps:
    whole = lines(log.rows(0, 30))
    log.write("a.jsonl", whole[:-40], age=0)
    yield None
    log.write("a.jsonl", whole, age=0)


@case()
def quote_that_is_never_closed(log: Log) -> Steps:
    log.named = "a.csv"
    log.jsonl("good.jsonl", log.rows(1000, 20))
    first = csv(log.rows(0, 30))
    rest = log.rows(30, 1).to_pylist()[0]
    log.write("a.csv", first + b'"r30')
    log.age("a.csv", 2 * HOUR)
    yield None
    log.write("a.csv", first + ('"r30",' + ",".join(str(rest[name]) for name in FEATURES) + "\n").encode(), age=1)


# compressed text


@case()
def gzip_half_written(log: Log) -> Steps:
    whole = gzip.compress(lines(log.rows(0, 3000)))
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    log.write("a.jsonl.gz", whole[: len(whole) // 2], age=0)
    yield None
    log.write("a.jsonl.gz", whole, age=0)


@case()
def gzip_cut_short_for_good(log: Log) -> Steps:
    log.named = "a.jsonl.gz"
    whole = gzip.compress(lines(log.rows(0, 3000)))
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    log.write("a.jsonl.gz", whole[: len(whole) // 2])
    yield None
    log.write("a.jsonl.gz", whole, age=1)


@case()
def gzip_damaged_in_the_middle(log: Log) -> Steps:
    log.named = "a.jsonl.gz"
    whole = gzip.compress(lines(log.rows(0, 3000)))
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    middle = len(whole) // 2
    log.write("a.jsonl.gz", whole[:middle] + bytes(64) + whole[middle + 64 :])
    yield None
    log.write("a.jsonl.gz", whole, age=1)


# Parquet


def broken_parquet(log: Log, change: Callable[[bytes], bytes], **options: Any) -> Steps:
    """A Parquet file of which the footer tells that it is broken, mended later."""
    log.named = "a.parquet"
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    whole = log.parquet("a.parquet", log.rows(0, 2000), **options)
    log.write("a.parquet", change(whole))
    yield None
    log.write("a.parquet", whole, age=1)


@case()
def parquet_cut_short(log: Log) -> Steps:
    yield from broken_parquet(log, lambda whole: whole[: len(whole) // 2])


@case()
def parquet_with_a_broken_footer(log: Log) -> Steps:
    yield from broken_parquet(log, lambda whole: whole[:-60] + b"?" * 52 + whole[-8:])


@case()
def parquet_with_a_footer_of_two_gigabytes(log: Log) -> Steps:
    yield from broken_parquet(log, lambda whole: whole[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1")


@case()
def parquet_of_zeros(log: Log) -> Steps:
    yield from broken_parquet(log, lambda whole: b"PAR1" + bytes(len(whole) - 8) + b"PAR1")


@case()
def parquet_damaged_in_the_middle(log: Log) -> Steps:
    """A row group that cannot be read: found only while a round reads it."""
    log.named = "a.parquet"
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    rows = table(0, 2000)
    whole = log.parquet("a.parquet", rows, row_group_size=500)
    page = pq.ParquetFile(log.at("a.parquet")).metadata.row_group(1).column(0).dictionary_page_offset
    log.write("a.parquet", whole[:page] + b"\xff" * 30 + whole[page + 30 :])
    kept = [k for k in range(2000) if log.stops or not 500 <= k < 1000]
    log.good.append(lambda: pa.array([f"r{k}" for k in kept]))
    log.at_once = False  # a round that has begun waits for all it took
    yield None
    if log.stops:
        log.write("a.parquet", whole)
    else:
        log.damaged = 500


@case()
def parquet_with_columns_of_one_name(log: Log) -> Steps:
    log.named = "a.parquet"
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    rows = table(0, 30)
    log.parquet("a.parquet", pa.Table.from_arrays([*rows.columns, rows["x0"]], names=[*rows.schema.names, "x0"]))
    yield None
    log.parquet("a.parquet", log.rows(0, 30), age=1)


@case("quarantine")
def broken_file_that_is_given_up(log: Log) -> Steps:
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    log.write("a.parquet", b"PAR1" + bytes(1000) + b"PAR1")
    log.forgotten.append("a.parquet")
    yield None
    log.parquet("b.parquet", log.rows(0, 30))


@case("skip", "quarantine")
def five_hundred_broken_files(log: Log) -> Steps:
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    for number in range(500):
        log.write(f"bad-{number:03}.parquet", b"PAR1" + bytes(100 + number) + b"PAR1")
    yield None
    for number in range(500):
        log.parquet(f"bad-{number:03}.parquet", log.rows(3 * number, 3), age=1)


# files that change


@case()
def replaced_between_look_and_read(log: Log) -> Steps:
    log.named, log.at_once = "a.parquet", False
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    whole = log.parquet("a.parquet", log.rows(0, 30))
    if not log.stops:
        log.good.pop()
        log.damaged = 30
    yield OPEN
    log.parquet("a.parquet", table(500, 40), age=1)
    yield None
    if log.stops:
        log.write("a.parquet", whole)


@case()
def deleted_between_look_and_read(log: Log) -> Steps:
    log.named, log.at_once = "a.parquet", False
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    whole = log.parquet("a.parquet", log.rows(0, 30))
    yield OPEN
    log.at("a.parquet").unlink()
    yield None
    log.write("a.parquet", whole)


@case()
def rewritten_after_it_was_read(log: Log) -> Steps:
    log.named = "a.jsonl"
    yield from bad_after_read(log, "a.jsonl", lines(log.rows(0, 30)), lines(table(700, 40)))


@case()
def cut_after_it_was_read(log: Log) -> Steps:
    log.named = "a.jsonl"
    whole = lines(log.rows(0, 30))
    yield from bad_after_read(log, "a.jsonl", whole, whole[:200])


def bad_after_read(log: Log, part: str, whole: bytes, other: bytes) -> Steps:
    log.write(part, whole)
    yield OPEN
    yield None
    log.write(part, other, age=1)
    log.jsonl("more.jsonl", log.rows(10_000, 20))
    yield None
    log.write(part, whole + lines(log.rows(30, 10)), age=0)


@case()
def folder_that_goes_away_and_comes_back(log: Log) -> Steps:
    log.jsonl("a.jsonl", log.rows(0, 30))
    yield None
    away = log.folder.with_name("away")
    log.folder.rename(away)
    log.named, log.at_once = log.folder.name, False
    yield None
    away.rename(log.folder)
    log.jsonl("b.jsonl", log.rows(30, 30))


# names


@case()
def links_in_a_loop(log: Log) -> Steps:
    log.jsonl("good.jsonl", log.rows(0, 30))
    log.at("a.jsonl").symlink_to("b.jsonl")
    log.at("b.jsonl").symlink_to("a.jsonl")
    log.at("again").symlink_to(log.folder)
    yield None


@case()
def link_out_of_the_folder(log: Log) -> Steps:
    log.named = "out.jsonl"
    log.jsonl("good.jsonl", log.rows(0, 30))
    secret = log.folder.parent / "secret.jsonl"
    secret.write_bytes(lines(table(500, 30)))
    log.at("out.jsonl").symlink_to(secret)
    yield None
    log.at("out.jsonl").unlink()


@case()
def name_that_is_not_utf8(log: Log) -> Steps:
    log.jsonl("good.jsonl", log.rows(0, 30))
    path = log.folder / os.fsdecode(b"caf\xe9.jsonl")
    path.write_bytes(lines(log.rows(100, 30)))
    yield None
    path.rename(log.folder / "cafe.jsonl")


@case()
def names_with_control_characters(log: Log) -> Steps:
    log.jsonl("good.jsonl", log.rows(0, 30))
    log.jsonl("new\nline\x1b[31m.jsonl", log.rows(30, 30))
    log.jsonl(" '\";--%s{}.jsonl", log.rows(60, 30))
    yield None


@case()
def folders_with_hostile_names(log: Log) -> Steps:
    names = ("=x", "a==b", "a=", "k=%FF", "k=%00", "c=DE/c=AT", "k=..", "n=999999999999999999999", "x9=\n", "a.b[0]=1")
    for number, name in enumerate(names):
        log.jsonl(f"{name}/part.jsonl", log.rows(30 * number, 30))
    yield None


@case("stop", "skip")
def folders_that_say_what_some_files_say_themselves(log: Log) -> Steps:
    """Half of the writers put the column into the file, half leave it to the folder: both mean the same."""
    log.monitor["inputs"] = {"features": list(FEATURES), "where": "country == 'DE'"}
    log.parquet("country=DE/a.parquet", log.rows(0, 30), age=4 * HOUR)
    log.parquet("country=DE/b.parquet", log.rows(30, 30, country=["DE"] * 30), age=3 * HOUR)
    log.parquet("country=AT/c.parquet", table(60, 30))
    yield None


@case()
def what_is_no_file(log: Log) -> Steps:
    log.jsonl("good.jsonl", log.rows(0, 30))
    os.mkfifo(log.at("pipe.jsonl"))
    log.at("folder.jsonl").mkdir()
    log.at("nowhere.jsonl").symlink_to("gone")
    yield None


# times, ids


@case()
def files_of_impossible_times(log: Log) -> Steps:
    for number, moment in enumerate((-3_000_000_000, 0, 4_000_000_000, 99_999_999_999)):
        log.jsonl(f"{number}.jsonl", log.rows(30 * number, 30))
        os.utime(log.at(f"{number}.jsonl"), (moment, moment))
    yield None


@case()
def clock_that_goes_backwards(log: Log) -> Steps:
    log.jsonl("a.jsonl", log.rows(0, 30))
    yield None
    log.clock_seconds = -90 * 24 * HOUR
    log.jsonl("b.jsonl", log.rows(30, 30), age=100 * 24 * HOUR)
    yield None
    log.clock_seconds = 0
    log.jsonl("c.jsonl", log.rows(60, 30))


@case()
def rows_out_of_order(log: Log) -> Steps:
    log.monitor["columns"] = {"id": "input_id", "timestamp": "at"}
    moments = np.random.default_rng(0).permutation(3000) * 1_000_000 + 1_700_000_000_000_000
    for number in range(3):
        own = pa.array(moments[1000 * number : 1000 * (number + 1)], pa.timestamp("us", "UTC"))
        log.parquet(f"{3 - number}.parquet", log.rows(1000 * number, 1000, at=own))
    yield None


@case()
def times_that_are_none(log: Log) -> Steps:
    """They say nothing of when a row came, and cost it nothing."""
    log.monitor["columns"] = {"id": "input_id", "timestamp": "at"}
    times = [None, "yesterday", "9999-12-31T23:59:59Z", "0001-01-01", "", "2026-02-30"] * 5
    log.jsonl("a.jsonl", log.rows(0, 30, at=times))
    log.jsonl("b.jsonl", log.rows(30, 30, at=["2026-03-01T00:00:00Z"] * 30))
    yield None


@case()
def ids_that_come_twice(log: Log) -> Steps:
    log.jsonl("a.jsonl", log.rows(0, 30))
    yield None
    log.jsonl("b.jsonl", pa.concat_tables([table(0, 30), log.rows(100, 10)]))


# a log that is a sample


def sampled(log: Log, values: Sequence[Any]) -> Steps:
    log.monitor["columns"] = {"id": "input_id", "inclusion": "p"}
    log.named, log.at_once = "'p'", False
    log.write("a.jsonl", lines(table(0, 30, p=values)))
    rows = log.rows(0, 30, p=[1.0] * 30)
    yield None
    log.jsonl("a.jsonl", rows)


@case("stop", "skip")
def inclusion_of_zero_and_above_one(log: Log) -> Steps:
    yield from sampled(log, [1.0, 0.0, 1.5] * 10)


@case("stop", "skip")
def inclusion_that_is_text(log: Log) -> Steps:
    yield from sampled(log, ["often"] * 30)


@case("stop", "skip")
def inclusion_that_some_rows_lack(log: Log) -> Steps:
    """A row that says nothing was logged for sure."""
    log.monitor["columns"] = {"id": "input_id", "inclusion": "p"}
    log.jsonl("a.jsonl", log.rows(0, 30, p=[None, 1.0, None] * 10))
    log.jsonl("b.jsonl", log.rows(30, 30))
    yield None


# JSON in columns


@case("stop", "skip")
def paths_into_text_nested_100000_deep(log: Log) -> Steps:
    log.monitor["inputs"] = {"features": [f"features.{name}" for name in FEATURES], "missing": {"refuse": True}}
    rows = table(0, 30)
    said = [json.dumps({name: row[name] for name in FEATURES}) for row in rows.to_pylist()]
    said[3], said[4] = '{"x0":' * 100_000 + "1" + "}" * 100_000, '{"x0": ' + "[" * 100_000
    said[5], said[6] = "not json", "\ud7ff"
    log.parquet("a.parquet", pa.table({"input_id": rows["input_id"], "features": said}))
    log.good.append(lambda: pa.array([f"r{k}" for k in range(30) if k not in (3, 4, 5, 6)]))
    log.damaged = 4
    yield None


# object stores


@case(stored=True)
def object_replaced_between_look_and_read(log: Log) -> Steps:
    log.named, log.at_once = "a.jsonl", False
    log.put("good.jsonl", lines(log.rows(10_000, 20)))
    whole = lines(log.rows(0, 30))
    if not log.stops:
        log.good.pop()
        log.damaged = 30
    log.put("a.jsonl", whole)
    yield OPEN
    log.put("a.jsonl", lines(table(500, 12)))
    yield None
    if log.stops:
        log.put("a.jsonl", whole)


@case(stored=True)
def object_deleted_between_look_and_read(log: Log) -> Steps:
    log.named, log.at_once = "a.jsonl", False
    whole = lines(log.rows(0, 30))
    log.put("a.jsonl", whole)
    yield OPEN
    log.remove("a.jsonl")
    yield None
    log.put("a.jsonl", whole)


@case(stored=True)
def objects_with_hostile_names(log: Log) -> Steps:
    names = ("a b", "ä", "k=%2F", "q?x=1", "hash#", "plus+", "quote'\"", "a.b[0]=1")
    for number, name in enumerate(names):
        log.put(f"{name}/part.jsonl", lines(log.rows(30 * number, 30)))
    yield None


@case("stop", stored=True, large=True)
def listing_of_5000_objects(log: Log) -> Steps:
    from concurrent.futures import ThreadPoolExecutor

    whole = [lines(log.rows(5 * number, 5)) for number in range(5000)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: log.put(f"{number:05}.jsonl", whole[number]), range(5000)))
    yield None


# tables


@case("stop")
def delta_table_whose_file_is_gone(log: Log) -> Steps:
    from deltalake import write_deltalake

    log.source, log.at_once = {"type": "delta", "path": str(log.folder)}, False
    write_deltalake(str(log.folder), log.rows(0, 30))
    (path,) = log.folder.glob("*.parquet")
    log.named = path.name
    whole = path.read_bytes()
    path.unlink()
    yield None
    path.write_bytes(whole)


def of_sqlite(log: Log) -> Any:
    import sqlite3

    path = log.folder.parent / "log.db"
    log.source = {"type": "sql", "database": f"sqlite:///{path}", "table": "requests", "cursor": "id"}
    log.at_once = False
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE requests (id INTEGER PRIMARY KEY, input_id, x0, x1, x2, x3)")
    add(connection, log.rows(1, 30))
    return connection


def add(connection: Any, rows: pa.Table) -> None:
    said = [(int(row["input_id"][1:]), *row.values()) for row in rows.to_pylist()]
    connection.executemany("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)", said)


@case("stop")
def table_whose_rows_go_away_under_a_round(log: Log) -> Steps:
    connection = of_sqlite(log)
    log.named = "requests"
    kept = connection.execute("SELECT * FROM requests WHERE id > 25").fetchall()
    yield OPEN
    connection.execute("DELETE FROM requests WHERE id > 25")
    yield None
    connection.executemany("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)", kept)


@case("stop")
def table_whose_rows_change_their_type(log: Log) -> Steps:
    connection = of_sqlite(log)
    log.good[0] = lambda: pa.array([f"r{number}" for number in range(1, 31) if number != 7])
    log.damaged = 1
    connection.execute("UPDATE requests SET x0 = 'four' WHERE id = 7")
    yield None
    add(connection, log.rows(100, 10))


@case("stop")
def table_that_is_dropped_under_a_round(log: Log) -> Steps:
    connection = of_sqlite(log)
    log.named = "requests"
    yield OPEN
    connection.execute("ALTER TABLE requests RENAME TO away")
    yield None
    connection.execute("ALTER TABLE away RENAME TO requests")


# large ones


@case("stop", "skip", large=True)
def row_of_a_gigabyte(log: Log) -> Steps:
    log.named = "a.jsonl"
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    first, second = lines(log.rows(0, 30)), lines(log.rows(30, 30))
    with log.at("a.jsonl").open("wb") as stream:
        stream.write(first + b'{"input_id": "bad", "x0": "')
        for _ in range(1024):
            stream.write(b"y" * (1 << 20))
        stream.write(b'"}\n' + second)
    log.age("a.jsonl", 2 * HOUR)
    yield None
    if log.stops:
        log.write("a.jsonl", first + second)
    else:
        log.damaged = 1


@case("stop", "skip", large=True)
def gzip_that_unpacks_to_a_row_of_two_gigabytes(log: Log) -> Steps:
    log.named = "a.jsonl.gz"
    log.jsonl("good.jsonl", log.rows(10_000, 20))
    first, second = lines(log.rows(0, 30)), lines(log.rows(30, 30))
    with gzip.open(log.at("a.jsonl.gz"), "wb", compresslevel=1) as stream:
        stream.write(first + b'{"input_id": "')
        for _ in range(2048):
            stream.write(bytes(b"y" * (1 << 20)))
        stream.write(b'"}\n' + second)
    log.age("a.jsonl.gz", 2 * HOUR)
    yield None
    if log.stops:
        log.write("a.jsonl.gz", gzip.compress(first + second), age=1)
    else:
        log.damaged = 1


@case("stop", large=True)
def file_of_ten_million_rows(log: Log) -> Steps:
    rows, chunk = 10_000_000, 500_000
    numbers = np.zeros(chunk)
    schema = table(0, 1).schema
    with pq.ParquetWriter(log.at("a.parquet"), schema) as writer:
        for start in range(0, rows, chunk):
            ids = pa.array(np.arange(start, start + chunk)).cast(pa.string())
            writer.write_table(pa.table([ids, *[pa.array(numbers + start)] * 4], schema=schema))
    log.good.append(lambda: pa.array(np.arange(rows)).cast(pa.string()))
    yield None

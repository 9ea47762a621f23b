"""Logs in an object store: read as those of a folder are, and no worse where the store fails."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import OpmonError, SourceError, UnavailableError
from opmon.sources._stored import SMALL_BYTES, StoredFile
from opmon.sources.files import Files
from opmon.sources.recorder import Recorder
from opmon.stores import open_filesystem
from opmon.testing import check_source


def put(url: str, data: bytes) -> None:
    filesystem, path = open_filesystem(url)
    with filesystem.open_output_stream(path, compression=None) as stream:
        stream.write(data)


def as_parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def as_jsonl(table: pa.Table) -> bytes:
    return "".join(f'{{"id": "{row["id"]}", "x": {row["x"]}}}\n' for row in table.to_pylist()).encode()


def as_csv(table: pa.Table) -> bytes:
    return ("id,x\n" + "".join(f"{row['id']},{row['x']}\n" for row in table.to_pylist())).encode()


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": [f"r{first + k}" for k in range(count)], "x": [0.5 * k for k in range(count)]})


@pytest.mark.parametrize(
    ("end", "form"),
    [
        ("parquet", as_parquet),
        ("jsonl", as_jsonl),
        ("csv", as_csv),
        ("csv.gz", lambda table: gzip.compress(as_csv(table))),
    ],
)
def test_files_of_every_format(bucket: str, end: str, form: Callable[[pa.Table], bytes]) -> None:
    for number in range(5):
        put(f"{bucket}/logs/day={number}/part-{number}.{end}", form(rows(10 * number, 10)))
    put(f"{bucket}/logs/_temporary/part-9.{end}", form(rows(90, 10)))
    put(f"{bucket}/logs/part-9.{end}.tmp", form(rows(90, 10)))
    put(f"{bucket}/elsewhere/part-9.{end}", form(rows(90, 10)))
    expected = rows(0, 50).append_column("day", pa.array([k // 10 for k in range(50)]))
    check_source(Files(f"{bucket}/logs"), expected, ordered=False)  # the store's times are whole seconds
    one = Files(f"{bucket}/logs/day=3/part-3.{end}")
    assert [piece.rows for piece in one.pending({})] == [10]
    some = Files(f"{bucket}/logs/day=[12]/*.{end}")
    assert sorted(piece.part for piece in some.pending({})) == [f"day=1/part-1.{end}", f"day=2/part-2.{end}"]


def large() -> pa.Table:
    values = np.random.default_rng(1).random((4, 60_000))
    return pa.table({"id": [f"r{k}" for k in range(60_000)], **{f"x{k}": values[k] for k in range(4)}})


def test_a_large_object_is_read_by_its_ranges(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = large()
    data = as_parquet(table, row_group_size=10_000)
    assert len(data) > SMALL_BYTES
    put(f"{bucket}/logs/big.parquet", data)
    source = Files(f"{bucket}/logs")
    slices = source.pending({})
    assert [piece.rows for piece in slices] == [60_000]
    read = pa.Table.from_batches([batch.rows for batch in source.read(slices)])
    assert read.equals(table)
    fetched: list[int] = []
    begun = StoredFile.begun

    def counted(self: StoredFile) -> Any:
        found = begun(self)
        fetched.append(len(found) if isinstance(found, bytes) else len(found.tail))
        return found

    monkeypatch.setattr(StoredFile, "begun", counted)
    assert source.pending({slices[0].part: slices[0].stop}) == []
    assert fetched == [], "what is finished is not fetched again"
    some = source.fetch(slices, {0: [59_999, 3]})
    assert some["id"].to_pylist() == ["r59999", "r3"]
    assert sum(fetched) < len(data) / 4


def test_an_object_that_grows_and_one_that_was_rewritten(bucket: str) -> None:
    put(f"{bucket}/logs/a.jsonl", as_jsonl(rows(0, 20)))
    source = Files(f"{bucket}/logs")
    first = source.pending({})
    put(f"{bucket}/logs/a.jsonl", as_jsonl(rows(0, 20)) + as_jsonl(rows(20, 5)))
    more = source.pending({"a.jsonl": first[0].stop})
    assert [piece.rows for piece in more] == [5]
    put(f"{bucket}/logs/a.jsonl", as_jsonl(rows(100, 40)))
    with pytest.raises(SourceError, match="was rewritten"):
        source.pending({"a.jsonl": more[0].stop})


def test_what_is_broken_costs_only_itself(bucket: str) -> None:
    put(f"{bucket}/logs/good.parquet", as_parquet(rows(0, 20)))
    whole = as_parquet(rows(20, 20))
    put(f"{bucket}/logs/bad.parquet", whole[:-9] + b"?" + whole[-8:])
    source = Files(f"{bucket}/logs", broken="skip")
    assert [piece.part for piece in source.pending({})] == ["good.parquet"]


def test_what_is_not_there_is_told(bucket: str) -> None:
    assert Files(f"{bucket}/logs").pending({}) == [], "a folder is there once something is in it"
    with pytest.raises(OpmonError, match="is not there"):
        Files("s3://no-such-bucket-anywhere/logs").pending({})
    put(f"{bucket}/logs/a.parquet", as_parquet(rows(0, 20)))
    source = Files(f"{bucket}/logs")
    slices = source.pending({})
    filesystem, path = open_filesystem(f"{bucket}/logs")
    filesystem.delete_file(f"{path}/a.parquet")
    with pytest.raises(SourceError, match=r"a\.parquet is gone from s3://"):
        list(source.read(slices))


def test_a_store_that_does_not_answer_is_waited_for_and_nothing_is_left_out(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = as_parquet(large(), row_group_size=10_000)
    put(f"{bucket}/logs/big.parquet", data)
    source = Files(f"{bucket}/logs", broken="skip")
    slices = source.pending({})
    monkeypatch.setattr("opmon.stores.CONNECT_SECONDS", 0.5)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match="does not answer"):
        source.pending({})
    with pytest.raises(UnavailableError, match="does not answer"):
        list(source.read(slices))


def test_a_store_that_fails_while_it_is_read_is_no_damaged_file(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``broken: skip`` a damaged row group is left out; one that was not delivered must never be."""
    put(f"{bucket}/logs/big.parquet", as_parquet(large(), row_group_size=10_000))
    source = Files(f"{bucket}/logs", broken="skip")
    slices = source.pending({})
    from opmon.sources import _stored

    made = _stored.open_filesystem

    class Failing:
        def __init__(self, url: str) -> None:
            self.real, self.path = made(url)

        def open_input_file(self, path: str) -> Any:
            stream = self.real.open_input_file(path)
            reads = iter(range(1000))

            class Stream:
                def read_at(self, size: int, start: int) -> bytes:
                    if next(reads) >= 2:
                        raise OSError("When reading information for key: AWS Error NETWORK_CONNECTION")
                    return bytes(stream.read_at(size, start))

                def close(self) -> None:
                    stream.close()

                def __enter__(self) -> Stream:
                    return self

                def __exit__(self, *_: object) -> None:
                    stream.close()

            return Stream()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    def failing(url: str) -> Any:
        store = Failing(url)
        return store, store.path

    monkeypatch.setattr(_stored, "open_filesystem", failing)
    with pytest.raises((SourceError, UnavailableError), match="does not answer"):
        list(source.read(slices))


def test_a_round_from_a_store(workbench: Any, bucket: str) -> None:
    put(f"{bucket}/logs/a.parquet", workbench.write_window().read_bytes())
    monitor = workbench.monitor(f"sqlite:///{workbench.folder / 'opmon.db'}", source={"path": f"{bucket}/logs"})
    assert monitor.advance().problems == []
    workbench.answer(monitor)
    assert monitor.advance().closed == 1


def test_what_was_recorded_in_a_store(bucket: str) -> None:
    import opmon

    with opmon.Recorder(f"{bucket}/recorded") as recorder:
        for number in range(30):
            recorder.record([float(number)], id=f"r{number}")
    source = Recorder(f"{bucket}/recorded")
    assert sum(piece.rows for piece in source.pending({})) == 30
    assert source.lost(source.pending({})) == {}

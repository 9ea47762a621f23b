"""A source that hangs costs its monitor the inputs, and nothing else."""

from __future__ import annotations

import os
import pickle
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import SourceError, UnavailableError
from opmon.sources.files import Files
from opmon.sources.patient import Patient
from opmon.sources.sql.sql import Sql
from opmon.stores import shown_place


def test_it_gives_what_the_source_gives_and_can_be_pickled(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "one.parquet")
    plain = Files(str(tmp_path), settle_seconds=0.001)
    source = pickle.loads(pickle.dumps(Patient(plain, "m")))
    slices = source.for_cycle().pending({})
    assert slices == plain.pending({})
    assert [batch.rows.to_pydict() for batch in source.read(slices)] == [{"a": [1, 2, 3]}]
    assert source.fetch(slices, {0: [2]}).to_pydict()["a"] == [3]


def test_a_file_that_became_a_pipe_is_told_and_not_waited_for(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "one.parquet")
    source = Files(str(tmp_path), settle_seconds=0.001)
    slices = source.pending({})
    (tmp_path / "one.parquet").unlink()
    os.mkfifo(tmp_path / "one.parquet")
    with pytest.raises((SourceError, OSError), match=r"regular file|one\.parquet"):
        list(source.read(slices))


@pytest.fixture
def silent() -> Iterator[int]:
    """A server that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server.getsockname()[1]


def test_a_database_that_never_answers_is_given_up(silent: int) -> None:
    source = Sql(f"postgresql+psycopg://me@127.0.0.1:{silent}/log", cursor="id", table="t", timeout="1s")
    begun = threading.active_count()
    with pytest.raises(UnavailableError, match="did not answer"):
        Patient(source, "silent").pending({})
    assert threading.active_count() <= begun + 1


def test_where_it_asks_is_told_without_secrets() -> None:
    assert Sql("postgresql://me:secret@db/log", cursor="id", table="t").asks == "postgresql://me:***@db/log"
    assert shown_place("s3://bucket/key") == "s3://bucket"
    assert Files("/data/logs").asks == "/data/logs"

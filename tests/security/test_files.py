"""Files that somebody else writes: links that lead out, and what is small until it is unpacked."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import SourceError
from opmon.labels.folder import LabelFolder
from opmon.sources.files import Files
from tests.patience import LONGEST

SECRET = "root:x:0:0:s3cret-of-the-machine"
READING = """
import json, resource, sys
from opmon.errors import OpmonError
from opmon.sources.files import Files
import pyarrow, pyarrow.parquet, pyarrow.csv

def taken():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

for folder in sys.argv[1:]:
    source, before, told, rows = Files(folder), taken(), "", 0
    try:
        for batch in source.read(source.pending({})):
            rows += batch.rows.num_rows
    except OpmonError as exc:
        told = str(exc)
    print(json.dumps([folder, taken() - before, rows, told]))
"""
"""Reads folders one after the other, and tells of each how many megabytes more that took, the rows, and why not."""


def packed(piece: bytes, times: int) -> bytes:
    """A piece so many times, as gzip."""
    engine = zlib.compressobj(1, wbits=31)
    return b"".join(engine.compress(piece) for _ in range(times)) + engine.flush()


def line_without_end(path: Path) -> None:
    (path / "a.csv.gz").write_bytes(gzip.compress(b"id,text\n1,") + packed(b"x" * (1 << 20), 320))


def object_without_end(path: Path) -> None:
    (path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"id": "') + packed(b"x" * (1 << 20), 320))


def twice_packed(path: Path) -> None:
    (path / "a.csv.gz").write_bytes(gzip.compress(packed(b" " * (1 << 20), 320)))


def nested(path: Path) -> None:
    (path / "a.jsonl").write_bytes(b'{"a":' * 200_000 + b"\n")


def one_cell(path: Path) -> None:
    """A page of 320 MB in a few kilobytes."""
    table = pa.table({"id": ["1"], "text": pa.array([b"\0" * (320 << 20)], pa.large_binary())})
    pq.write_table(table, path / "a.parquet", compression="zstd", use_dictionary=False, write_statistics=False)


def many_rows(path: Path) -> None:
    """Eight million rows in a few kilobytes."""
    table = pa.table({"a": pa.DictionaryArray.from_arrays(pa.array(np.zeros(8_000_000, np.int8)), ["x" * 1000])})
    pq.write_table(table, path / "a.parquet", compression="zstd")


MAKE = (line_without_end, object_without_end, twice_packed, nested, many_rows, one_cell)


def test_what_is_small_until_it_is_unpacked_takes_no_memory(tmp_path: Path) -> None:
    for make in MAKE:
        (tmp_path / make.__name__).mkdir()
        make(tmp_path / make.__name__)
    folders = [str(tmp_path / make.__name__) for make in MAKE]
    done = subprocess.run(
        [sys.executable, "-c", READING, *folders], capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert not done.returncode, done.stderr[-500:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(MAKE)
    for folder, taken, rows, told in lines:
        assert taken < 200, folder
        assert rows or "a." in told, "it is read, or refused by name"
        assert len(told) < 2000


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    path.write_text(f"{SECRET}\n1\n")
    return path


def test_a_link_in_the_source_leads_nowhere(tmp_path: Path, secret: Path) -> None:
    folder = tmp_path / "production"
    folder.mkdir()
    for name, target in (("a.csv", secret), ("b.csv", "../secret.csv"), ("c.csv", "/proc/self/environ")):
        (folder / name).symlink_to(target)
        with pytest.raises(SourceError) as told:
            list(Files(str(folder)).read(Files(str(folder)).pending({})))
        assert name in str(told.value)
        assert SECRET not in str(told.value)
        (folder / name).unlink()


def test_a_link_among_labels_leads_nowhere(tmp_path: Path, secret: Path) -> None:
    """Whoever fills in files there is no user of this machine, and must not read or change its files by opmon."""
    provider = LabelFolder(str(tmp_path / "labels"))
    folder = tmp_path / "labels"
    folder.mkdir()
    names = ("answers.csv", "tasks-round-1-12345678.csv", "self.jsonl")
    for name, target in zip(names, (secret, secret, "/proc/self/environ"), strict=True):
        (folder / name).symlink_to(target)
    (folder / "finished").mkdir()
    (folder / "finished" / "tasks-round-2-12345678.csv").symlink_to(secret)
    (folder / "loop.csv").symlink_to("loop.csv")
    os.mkfifo(folder / "pipe.csv")
    before = secret.read_bytes()
    pulled = provider.pull("")
    assert not pulled.said
    assert len([each for each in pulled.problems if "leads out of its folder" in each]) == len(names)
    assert SECRET not in json.dumps([*pulled.problems, pulled.cursor])
    provider.forget({"t1-000000000000"})
    provider.reconcile([])
    assert secret.read_bytes() == before


def test_links_in_the_state_folder_are_not_written_through(tmp_path: Path, secret: Path) -> None:
    """The folder is opmon's alone; one that others made beforehand is closed to them."""
    from opmon.private import close_to_others, make_private, new_private, private_folder

    state = tmp_path / "state"
    state.mkdir(mode=0o777)
    state.chmod(0o777)
    close_to_others(state)
    assert not state.stat().st_mode & 0o007
    (state / "opmon.db").symlink_to(secret)
    (state / "gone.db").symlink_to(tmp_path / "nothing")
    make_private(state / "opmon.db")
    make_private(state / "gone.db")
    assert not (tmp_path / "nothing").exists(), "a link that leads nowhere makes no file there"
    with pytest.raises(FileExistsError):
        new_private(state / "opmon.db")
    with pytest.raises(OSError):
        private_folder(state / "opmon.db")
    assert secret.read_text().startswith(SECRET)


def test_bombs_of_labels_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    folder.mkdir()
    (folder / "long.csv").write_bytes(b"task_key,label\n" + b"x" * 20_000_000)
    (folder / "deep.jsonl").write_bytes(b"[" * 500_000 + b"\n")
    with (folder / "large.jsonl").open("wb") as sparse:
        sparse.truncate(1 << 40)
    with (folder / "studio.json").open("wb") as file:
        file.write(b"[" * 5_000_000)
    problems = LabelFolder(str(folder)).pull("").problems
    assert len(problems) == 4
    assert all(len(each) < 2000 for each in problems)

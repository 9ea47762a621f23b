"""A recorder that writes to an object store."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector

import opmon
from opmon.stores import open_filesystem
from tests.patience import LONGEST


def found(url: str) -> dict[str, dict[str, Any]]:
    """By its name, what each object tells, and its rows."""
    filesystem, path = open_filesystem(url)
    objects = filesystem.get_file_info(FileSelector(path, recursive=True))
    tables = {each.base_name: pq.read_table(each.path, filesystem=filesystem) for each in objects if each.is_file}
    return {
        name: json.loads(table.schema.metadata[b"opmon.recorder"]) | {"rows": table.num_rows}
        for name, table in sorted(tables.items())
    }


def test_files_are_objects(bucket: str) -> None:
    with opmon.Recorder(f"{bucket}/inputs/", rows_per_file=10) as recorder:
        for number in range(25):
            recorder.record([float(number)])

    assert [told["rows"] for told in found(f"{bucket}/inputs").values()] == [10, 10, 5]


def test_a_store_that_does_not_answer_is_tried_again(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opmon.Recorder(f"{bucket}/none/inputs", buffer_rows=4) as recorder:
        with monkeypatch.context() as away:
            away.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
            for number in range(3):
                recorder.record([float(number)])
            assert not recorder.flush(0.01)
            while recorder.stats().trouble is None:
                recorder.flush(0.01)
            for number in range(3):
                recorder.record([float(number)])
        assert recorder.stats().dropped == {"unreachable": 2}

    told = list(found(f"{bucket}/none/inputs").values())
    assert [each["rows"] for each in told] == [3, 1]
    assert told[-1]["now"] == {"recorded": 6, "written": 4, "passed_over": 0, "dropped": {"unreachable": 2}}


def test_forked_processes_open_the_store_anew(bucket: str) -> None:
    script = f"""
import os, sys, opmon
recorder = opmon.Recorder({bucket!r} + "/forked", exit_seconds=120)
recorder.record([0.0])
assert recorder.flush()
children = []
for number in range(2):
    child = os.fork()
    if not child:
        recorder.record([1.0 + number])
        sys.exit(0)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
recorder.record([3.0])
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=LONGEST)

    told = found(f"{bucket}/forked").values()
    assert sorted(each["rows"] for each in told) == [1, 1, 1, 1]
    assert len({each["writer"] for each in told}) == 3

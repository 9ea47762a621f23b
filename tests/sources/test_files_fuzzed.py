"""Bytes that are changed at random: rows, rows that are counted as lost, or an error that names the file."""

from __future__ import annotations

import gzip
import json
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import SourceError
from opmon.sources.files import Files

ROWS = [
    {"id": i, "x": i / 2, "name": f"n{i % 5}", "list": [1.5, 2.0], "object": {"k": i}, "é": "ü" * (i % 3)}
    for i in range(120)
]


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(ROWS), sink, row_group_size=40)
    return bytes(sink.getvalue())


def csv() -> bytes:
    lines = [f'{row["id"]},{row["x"]},"{row["name"]}, ""quoted""",{row["é"]}' for row in ROWS]
    return "\n".join(["id,x,name,é", *lines, ""]).encode()


def jsonl() -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()


FILES = {
    "a.parquet": parquet(),
    "a.csv": csv(),
    "a.jsonl": jsonl(),
    "a.csv.gz": gzip.compress(csv()),
    "a.jsonl.gz": gzip.compress(jsonl()),
}


def changed(content: bytes, dice: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(dice.choice([1, 1, 2, 8])):
        at = dice.randrange(len(found)) if dice.random() < 0.6 else max(0, len(found) - dice.randrange(1, 1500))
        match dice.randrange(4):
            case 0 | 1:
                found[at] = dice.randrange(256)
            case 2:
                del found[at : at + dice.randrange(1, 40)]
            case 3:
                found[at:at] = dice.randbytes(dice.randrange(1, 20))
    return bytes(found)


@pytest.mark.parametrize("name", FILES)
def test_whatever_is_changed_in_a_file_it_is_read_or_told(log, name) -> None:
    dice = random.Random(name)
    for moment in range(60):
        log.write(name, changed(FILES[name], dice))
        os.utime(log.folder / name, (moment, moment))
        for broken in ("stop", "skip"):
            error = read(log.files(broken=broken, max_row_bytes=4000))
            assert error is None or name in error


def read(files: Files) -> str | None:
    """Read all there is, and read it again row by row; the error where that cannot be."""
    try:
        slices = files.pending({})
        batches = list(files.read(slices))
        good = {0: [batch.first_row + i for batch in batches for i in range(batch.rows.num_rows)]}
        again = files.fetch(slices, good if slices else {})
    except SourceError as exc:
        return str(exc)
    lost = sum(sum(batch.unreadable.values()) for batch in batches)
    assert len(good[0]) + lost == sum(piece.rows for piece in slices)
    assert again.num_rows == len(good[0])
    assert not lost or files.broken == "skip"
    return None

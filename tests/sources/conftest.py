from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.sources.files import Files
from opmon.types import Slice


class Log:
    """A folder that production writes to, and the reading of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, part: str, content: bytes | str | Mapping[str, Any], age: float = 0) -> Path:
        """A file of bytes, text, or (a mapping) columns as Parquet, last written ``age`` seconds ago."""
        path = self.folder / part
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Mapping):
            pq.write_table(pa.table(dict(content)), path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.age(part, age)
        return path

    def append(self, part: str, content: bytes | str, age: float = 0) -> None:
        with (self.folder / part).open("ab") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
        self.age(part, age)

    def age(self, part: str, seconds: float) -> None:
        moment = time.time() - seconds
        os.utime(self.folder / part, (moment, moment))

    def files(self, **options: Any) -> Files:
        return Files(**{"path": str(self.folder), **options})


@pytest.fixture
def log(tmp_path: Path) -> Log:
    folder = tmp_path / "log"
    folder.mkdir()
    return Log(folder)


@pytest.fixture
def rows_of() -> Callable[..., list[dict[str, Any]]]:
    def rows(files: Files, slices: list[Slice], columns: list[str] | None = None) -> list[dict[str, Any]]:
        return [row for batch in files.read(slices, columns) for row in batch.rows.to_pylist()]

    return rows


@pytest.fixture
def drain() -> Callable[..., list[dict[str, Any]]]:
    """All rows, read in rounds of ``limit``, each from where the last one stopped."""

    def drained(files: Files, positions: dict[str, str], limit: int | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while slices := files.pending(positions, limit):
            assert limit is None or sum(piece.rows for piece in slices) <= limit
            found += [row for batch in files.read(slices) for row in batch.rows.to_pylist()]
            positions.update({piece.part: piece.stop for piece in slices})
        return found

    return drained

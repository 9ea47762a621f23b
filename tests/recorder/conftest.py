"""What recorders left in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import opmon


@dataclass(frozen=True)
class Left:
    """The files below a folder."""

    folder: Path

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*/*.parquet"), key=lambda file: file.name)

    def table(self) -> pa.Table:
        tables = [pq.read_table(file) for file in self.files() if ".tally." not in file.name]
        return pa.concat_tables([table.replace_schema_metadata() for table in tables], promote_options="permissive")

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(pq.read_schema(file).metadata[b"opmon.recorder"]) for file in self.files()]

    def by_writer(self) -> dict[str, dict[str, Any]]:
        """What the last file of each writer tells; its files are whole, numbered without a gap, and add up."""
        last: dict[str, dict[str, Any]] = {}
        for told in self.told():
            before = last.get(told["writer"])
            assert told["sequence"] == (0 if before is None else before["sequence"] + 1)
            assert before is None or told["before"] == before["now"]
            last[told["writer"]] = told
        return last

    def counts(self) -> tuple[int, int, int]:
        """Recorded, written and dropped, as the last files of all writers tell."""
        now = [told["now"] for told in self.by_writer().values()]
        return (
            sum(each["recorded"] for each in now),
            sum(each["written"] for each in now),
            sum(sum(each["dropped"].values()) for each in now),
        )


@pytest.fixture
def left(tmp_path: Path) -> Left:
    return Left(tmp_path / "inputs")


@pytest.fixture
def recorder(left: Left) -> Iterator[opmon.Recorder]:
    with opmon.Recorder(str(left.folder)) as made:
        yield made

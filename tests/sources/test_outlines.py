"""What is remembered of Parquet files, in a process that lives for years."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.sources import _parquet
from opmon.sources._outlines import KEPT_SECONDS, Outline, Outlines
from opmon.sources.files import Files


def outline(rows: int, *names: str) -> Outline:
    return Outline(pa.schema([(name, pa.int64()) for name in names]), rows)


def test_outlines_that_nobody_asks_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("opmon.sources._outlines.time.monotonic", lambda: now[0])
    known = Outlines()
    for number in range(100):
        assert known.find((f"{number}", 1, "x")) is None
        known.put((f"{number}", 1, "x"), outline(number, "a"))
    for _ in range(5):
        now[0] += 0.9 * KEPT_SECONDS
        assert known.find(("7", 1, "x")) == outline(7, "a")
    assert len(known) == 1
    now[0] += 3 * KEPT_SECONDS
    assert known.find(("7", 1, "x")) is None
    assert len(known) == 0


def test_files_of_one_schema_share_its_memory() -> None:
    """Also where those of several logs take turns."""
    known = Outlines()
    put = [known.put((f"{k}", 1, "x"), outline(k, "a", "b") if k % 2 else outline(k, "c")) for k in range(10)]
    assert len({id(each.schema) for each in put}) == 2


def test_a_worker_that_meets_new_files_for_long_holds_those_of_the_last_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("opmon.sources._outlines.time.monotonic", lambda: now[0])
    monkeypatch.setattr("opmon.sources._parquet._outlines", Outlines())
    source, stands, most = Files(str(tmp_path), settle_seconds=0.001), dict[str, str](), 0
    for number in range(60):
        path = tmp_path / f"{number:03}.parquet"
        pq.write_table(pa.table({"a": [1, 2]}), path)
        os.utime(path, (1.7e9 + number, 1.7e9 + number))
        for piece in source.pending(stands):
            stands[piece.part] = piece.stop
        now[0] += KEPT_SECONDS / 5
        most = max(most, len(_parquet._outlines))
    assert most > 1
    assert most <= 12

"""SIGKILL in the middle, with senders that send again what was not acknowledged."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.ingest import expected, measured


def test_every_acknowledged_event_is_there_once_after_a_kill(tmp_path: Path) -> None:
    figures, rows = measured(tmp_path, rate=300, seconds=2)
    assert figures["again"] > 0, "nothing was under way when it was killed"
    assert rows == expected(300, 2)
    assert figures["lost"] == 0

"""Since when a round has waited for its judge."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from opmon.stages.judging import _waited_since


def test_what_a_kill_has_cut_off_begins_anew(tmp_path: Path) -> None:
    """It stood there for good, and each cycle ended in a fault until the judge answered."""
    path = tmp_path / "judge-waits"
    assert _waited_since(path) is None
    since = datetime(2026, 3, 1, tzinfo=UTC)
    path.write_text(since.isoformat())
    assert _waited_since(path) == since
    for cut in ("", since.isoformat()[:6]):
        path.write_text(cut)
        assert _waited_since(path) is None

"""Truths are kept in few files, found again by their inputs, and forgotten when they are old."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from opmon.errors import StateUnavailable
from opmon.truth.kept import Books, Kept
from opmon.truth.truths import MOMENT, Truths

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def truths(known: dict[int, str], at: datetime = NOW, read: datetime = NOW) -> Truths:
    hashes = np.array(list(known), np.uint64)
    return Truths.newest(
        hashes,
        pa.array(list(known.values())),
        pa.array([at] * len(known), MOMENT),
        pa.array([read] * len(known), MOMENT),
    )


def found(kept: Kept, *hashes: int) -> dict[int, str]:
    some = kept.find(np.array(hashes, np.uint64))
    return dict(zip(some.hashes.tolist(), some.labels.to_pylist(), strict=True))


def test_of_an_input_the_truth_that_was_known_last_counts(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "truth" / "m")
    kept.add(truths({7: "a", 5: "b", 2**63 + 5: "c"}), Books({"part": "3"}))
    kept.add(truths({7: "late"}, NOW + timedelta(hours=1)), Books({"part": "4"}))
    kept.add(truths({7: "early", 5: "same moment"}, NOW), Books({"part": "6"}, taken=6))
    assert found(kept, 7, 5, 9, 7, 2**63 + 5) == {7: "late", 5: "same moment", 2**63 + 5: "c"}
    assert kept.books() == Books({"part": "6"}, taken=6)


def test_nothing_is_there_at_first_and_a_pull_without_truths_moves_the_position(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "truth" / "m")
    assert (kept.books(), found(kept, 1)) == (Books(), {})
    nothing = pa.array([], MOMENT)
    kept.add(Truths(np.empty(0, np.uint64), pa.nulls(0), nothing, nothing), Books({"part": "3"}))
    assert (kept.books().positions, found(kept, 1)) == ({"part": "3"}, {})
    kept.add(truths({1: "a"}), Books({"part": "4"}, NOW))
    assert (kept.books(), found(kept, 1)) == (Books({"part": "4"}, NOW), {1: "a"})


def test_many_pulls_are_few_files(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "truth" / "m")
    for pull in range(100):
        kept.add(truths({pull * 10 + k: str(pull) for k in range(10)}), Books({"part": str(pull)}))
    assert len(list(kept.folder.iterdir())) <= 6
    assert found(kept, *range(1000)) == {k: str(k // 10) for k in range(1000)}


def test_what_is_old_is_forgotten(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "truth" / "m")
    kept.add(truths(dict.fromkeys(range(100), "old"), read=NOW), Books())
    for day in range(1, 5):
        now = NOW + timedelta(days=day)
        kept.add(truths({1000 * day: "new"}, read=now), Books({"part": str(day)}), now - timedelta(days=2))
    assert found(kept, 1, 50, 1000, 4000) == {4000: "new"} | ({1000: "new"} if found(kept, 1000) else {})
    assert kept.books().positions == {"part": "4"}


def test_a_file_that_cannot_be_read_says_how_to_begin_anew(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "truth" / "m")
    kept.add(truths({1: "a"}), Books())
    (path,) = kept.folder.iterdir()
    path.write_bytes(b"PAR1 broken")
    with pytest.raises(StateUnavailable, match="Remove the folder"):
        kept.books()

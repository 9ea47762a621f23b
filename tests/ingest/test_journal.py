"""What was acknowledged is there, once, whatever happens."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import numpy as np
import pytest

from opmon.errors import LeaseHeld
from opmon.ingest.event import Event, Kept, Kind
from opmon.ingest.journal import Journal
from opmon.ingest.segments import Segments


def event(name: str, body: str = "{}") -> Event:
    return Event(Kind.ROW, name, name or "-", "2026-03-01T12:00:00+00:00", body)


def journal(folder: Path, every: float = 60.0) -> Journal:
    return Journal(Segments(folder), every)


def kept(folder: Path) -> list[str]:
    lines = (line for path in sorted(folder.glob("*.log")) for line in path.read_bytes().splitlines(True))
    return [found.id for line in lines if (found := Kept.of_line(line))]


def test_an_event_that_comes_again_is_kept_once_also_after_a_restart(tmp_path: Path) -> None:
    first = journal(tmp_path)
    assert first.append([("m", [event("a"), event("b"), event("a")]), ("n", [event("a")])]) == [2, 1]
    assert first.append([("m", [event("b"), event("c"), event("")])]) == [2]
    first.segments.close()  # as a kill does: nothing else is closed

    again = journal(tmp_path)
    assert again.append([("m", [event("c"), event("d"), event("")])]) == [2]
    assert kept(tmp_path) == ["a", "b", "a", "c", "-", "d", "-"]


def test_what_was_not_written_to_its_end_is_cut_off(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.append([("m", [event("a"), event("b")])])
    first.segments.close()
    path = next(tmp_path.glob("*.log"))
    whole = path.read_bytes()
    for torn in (whole[:40], whole[:-1] + b"X", b"\0" * 100, whole + whole[:-1]):
        path.write_bytes(whole + torn)
        again = journal(tmp_path)
        again.segments.close()
        assert path.read_bytes().startswith(whole)
        assert set(kept(tmp_path)) == {"a", "b"}


def test_a_second_process_is_told_who_has_the_folder(tmp_path: Path) -> None:
    first = journal(tmp_path)
    with pytest.raises(LeaseHeld, match=f"process {os.getpid()} keeps what is sent"):
        journal(tmp_path)
    first.segments.close()
    journal(tmp_path).segments.close()


def test_a_full_disk_costs_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """A limit on the size of files is what a full disk is: some of what is written fits, and then no more."""
    made = journal(tmp_path)
    made.append([("m", [event("a")])])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            made.append([("m", [event("b", "x" * 5000), event("c")])])
        assert kept(tmp_path) == ["a"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert made.append([("m", [event("b"), event("a")])]) == [1]
    assert kept(tmp_path) == ["a", "b"]


def test_segments_are_closed_by_age_and_size_and_numbers_are_not_used_again(tmp_path: Path) -> None:
    made = journal(tmp_path, every=0.0)
    made.append([("m", [event("a")])])
    made.close_if_due()
    made.append([("m", [event("b")])])
    made.every, made.largest = 60.0, 10
    made.close_if_due()
    for segment in made.segments.unread():
        made.segments.mark_read(segment)
    made.append([("m", [event("c")])])
    assert [path.name for path in sorted(tmp_path.glob("*.[lr]*"))] == [
        "000000000001.read",
        "000000000002.read",
        "000000000003.log",
    ]


def test_digests_are_kept_in_few_files_and_the_oldest_go(tmp_path: Path) -> None:
    segments = Segments(tmp_path)
    for number in range(1, 301):
        segments.keep_keys(number, np.array([2 * number, 2 * number + 1], np.uint64), most=400)
    found = {key for _, keys in segments.kept_keys() for key in keys.tolist()}
    assert found >= set(range(202, 602))
    assert len(found) <= 400 + 2 * 64
    assert len(list(tmp_path.glob("*.keys"))) <= 80
    segments.close()

"""Hostile files, met and then mended: every good row is taken once, what is lost is counted, and one message says why.

The same inputs meet whole monitors in ``tests/benchmarks/hostile.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from opmon.errors import SourceError
from opmon.sources.files import Files
from opmon.types import Slice
from tests.benchmarks.hostile_cases import CASES, MODES, OPEN, Log

OF_MONITORS = {
    "json_number_beyond_all_bounds",
    "type_that_changes_in_the_middle",
    "types_of_two_files_that_conflict",
    "ids_that_come_twice",
}
"""What only a model, or a person, can tell."""
FILES = [
    case.name
    for case in CASES.values()
    if not case.large and not case.stored and tuple(case.modes) == MODES and case.name not in OF_MONITORS
]


@dataclass
class Rounds:
    """Slices that were taken, and what was read of them; one that cannot be read is tried again."""

    log: Log
    positions: dict[str, str] = field(default_factory=dict)
    begun: list[list[Slice]] = field(default_factory=list)
    ids: Counter[str] = field(default_factory=Counter)
    lost: int = 0

    @property
    def files(self) -> Files:
        return Files(str(self.log.folder), broken=self.log.mode)  # type: ignore[arg-type]

    def open(self) -> None:
        self.positions |= {flaw.part: flaw.passing for flaw in self.files.flaws(self.positions)}
        slices = self.files.pending(self.positions)
        self.positions |= {piece.part: piece.stop for piece in slices}
        self.begun += [slices] if slices else []

    def read(self, slices: list[Slice]) -> None:
        batches = list(self.files.read(slices))
        self.ids.update(str(key) for batch in batches for key in batch.rows["input_id"].to_pylist())
        self.lost += sum(sum(batch.unreadable.values()) for batch in batches)

    def cycle(self) -> list[str]:
        """What cannot be done now, in words."""
        told = []
        try:
            self.open()
        except SourceError as exc:
            told.append(str(exc))
        for slices in [*self.begun]:
            try:
                self.read(slices)
                self.begun.remove(slices)
            except SourceError as exc:
                told.append(str(exc))
        return told


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FILES)
def test_good_rows_are_taken_once_whatever_lies_beside_them(tmp_path: Path, name: str, mode: str) -> None:
    log = Log(tmp_path / "log", mode)
    log.folder.mkdir()
    taken = Rounds(log)
    for step in CASES[name].steps(log):
        if step == OPEN:
            taken.open()
            continue
        for _ in range(2):
            told = taken.cycle()
            assert len(set(told)) <= 1, told
            assert all(log.named in message and message.isprintable() for message in told)
            assert mode == "stop" or not log.at_once or not told
    assert [*taken.cycle(), *taken.cycle()] == []
    assert taken.ids == Counter(key for ids in log.good for key in ids().to_pylist())
    assert taken.lost == log.damaged

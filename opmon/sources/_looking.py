"""Looking for what can be read now: what is broken is found here, before a round takes it, as far as that is cheap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Self

from opmon.abc import Flaw
from opmon.errors import SourceError
from opmon.sources._ahead import mapped
from opmon.sources._damage import Conflicting, Damaged, stopping
from opmon.sources._folder import Entry, Place
from opmon.sources._format import Format, Piece
from opmon.sources._position import BEGIN, Position, parse
from opmon.sources._runs import Opened, add_columns, held
from opmon.sources._schema import Columns
from opmon.sources._stored import StoredFile
from opmon.stores import AT_ONCE
from opmon.types import Slice

_TOLD = 3
_AHEAD = 3600.0
"""So many seconds are the clocks of two machines apart at the most."""
_LATEST = 250_000_000_000  # in the year 9892: a time beyond cannot be told


@dataclass(frozen=True, slots=True)
class _Begun:
    """A file with what was read of it at once; or what is wrong with it."""

    entry: Entry
    problem: SourceError | None = None

    @classmethod
    def of(cls, entry: Entry) -> Self:
        try:
            return cls(held(entry))
        except SourceError as exc:
            return cls(entry, exc)


@dataclass
class Looking:
    """One look at a folder; ``stops``: what is broken is raised, otherwise it is left out."""

    folder: Place
    form_of: Callable[[str], Format]
    columns: Callable[[], Columns]
    stops: bool
    left_out: dict[str, SourceError] = field(default_factory=dict)
    seen: dict[str, Entry] = field(default_factory=dict)
    now: float = field(default_factory=time.time)

    def slices(self, positions: Mapping[str, str], limit: int | None) -> list[Slice]:
        """What can be read after ``positions``, oldest file first, at most ``limit`` rows."""
        found = self._once(positions, limit)
        while limit is not None and any(piece.part in self.left_out for piece in found):
            found = self._once(positions, limit)  # others take the room of those that go with no other
        return [piece for piece in found if piece.part not in self.left_out]

    def each(self) -> list[Slice]:
        """All rows of every file by itself, oldest file first: whether their columns go together is not asked."""
        opened = (self._new_of(found, None, None) for found in self._begun({}))
        return [one.slice for one in opened if one is not None]

    def flaws(self, positions: Mapping[str, str], limit: int | None) -> list[Flaw]:
        """What is damaged, each with the position that passes over it until it changes."""
        self.slices(positions, limit)
        return [
            Flaw(part, str(problem), str(_passing(self.seen[part], positions.get(part))))
            for part, problem in self.left_out.items()
            if part in self.seen and isinstance(problem, Damaged) and not isinstance(problem, Conflicting)
        ]

    def told(self) -> str:
        """What was left out, and why; nothing where nothing was."""
        problems = [str(problem) for problem in self.left_out.values()]
        return "; ".join(problems[:_TOLD]) + (f"; and {len(problems) - _TOLD} more" if len(problems) > _TOLD else "")

    def _once(self, positions: Mapping[str, str], limit: int | None) -> list[Slice]:
        slices: list[Slice] = []

        def opened() -> Iterator[Opened]:
            left = limit
            for found in self._begun(positions):
                if left is not None and left <= 0:
                    return
                one = self._new_of(found, positions.get(found.entry.part), left)
                if one is not None:
                    slices.append(one.slice)
                    left = None if left is None else left - one.slice.rows
                    yield one

        add_columns(self.columns(), opened(), self.stops, self._leave_out)
        return slices

    def _begun(self, positions: Mapping[str, str]) -> Iterator[_Begun]:
        """The files that are not finished with, oldest first; many objects of a store are asked for at once."""
        entries = self.folder.entries(lambda problem: self._leave_out(str(problem), problem))
        unfinished = (entry for entry in entries if entry.part not in self.left_out and self._is_open(entry, positions))
        stored = bool(entries) and isinstance(entries[0].path, StoredFile)
        return mapped(_Begun.of, unfinished, AT_ONCE) if stored else map(_Begun.of, unfinished)

    def _is_open(self, entry: Entry, positions: Mapping[str, str]) -> bool:
        """Whether a file may have more than was read; one whose position makes no sense is left out."""
        self.seen[entry.part] = entry
        try:
            return not parse(positions.get(entry.part), entry.part).finished_with(entry.size, entry.modified_ns)
        except SourceError as exc:
            self._leave_out(entry.part, exc)
            return False

    def _new_of(self, begun: _Begun, position: str | None, limit: int | None) -> Opened | None:
        """The new rows of a file; None where there are none, or it is left out."""
        entry = begun.entry
        try:
            start = parse(position, entry.part)
            if begun.problem is not None:
                raise begun.problem
            form = self.form_of(entry.part)
            span = form.count(entry, start, limit, _left_alone(self.now - entry.modified_ns / 1e9))
            if span is not None and span.lost is not None and (self.stops or not span.rows):
                raise Damaged(span.lost.why())  # what follows the last whole row is told, too
        except SourceError as exc:
            self._leave_out(entry.part, exc)
            return None
        if span is None or not span.rows:
            return None
        # rows at the end of a file that grows came some time after it was last read to its end
        since = start.modified_ns if start.started else entry.modified_ns
        arrived = datetime.fromtimestamp(min(max(since / 1e9, 0.0), _LATEST), UTC)
        piece = Slice(entry.part, position or BEGIN, str(span.stop), span.rows, arrived)
        return Opened(0, piece, form, Piece(entry, start, span.stop))

    def _leave_out(self, part: str, problem: SourceError) -> None:
        if self.stops:
            raise stopping(problem)
        self.left_out[part] = problem


def _left_alone(seconds: float) -> float:
    """How long a file was left alone that was written so long ago.

    Where that is yet to come, a clock is wrong: if it is a little ahead, somebody may be writing at this moment; if it
    is far ahead the time says nothing, and the file is like an old one, or it would wait for years.
    """
    return 0.0 if -_AHEAD < seconds < 0 else abs(seconds)


def _passing(entry: Entry, position: str | None) -> Position:
    """A position at which a file is finished with as long as it stays as it is."""
    try:
        at = parse(position, entry.part)
    except SourceError:
        at = Position()
    return replace(at, whole=at.at, size=entry.size, modified_ns=entry.modified_ns)

"""Looking for what can be read now: what is broken is found here, before a round takes it, as far as that is cheap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from opmon.errors import SourceError
from opmon.sources._damage import Damaged
from opmon.sources._folder import Entry, Folder
from opmon.sources._format import Format, Piece
from opmon.sources._position import BEGIN, parse
from opmon.sources._runs import Opened, add_columns, held
from opmon.sources._schema import Columns
from opmon.types import Slice

_TOLD = 3
_LATEST = 250_000_000_000  # in the year 9892: a time beyond cannot be told


@dataclass
class Looking:
    """One look at a folder; ``stops``: what is broken is raised, otherwise it is left out."""

    folder: Folder
    form_of: Callable[[str], Format]
    columns: Callable[[], Columns]
    stops: bool
    left_out: dict[str, SourceError] = field(default_factory=dict)
    now: float = field(default_factory=time.time)

    def slices(self, positions: Mapping[str, str], limit: int | None) -> list[Slice]:
        """What can be read after ``positions``, oldest file first, at most ``limit`` rows."""
        found = self._once(positions, limit)
        while limit is not None and any(piece.part in self.left_out for piece in found):
            found = self._once(positions, limit)  # others take the room of those that go with no other
        return [piece for piece in found if piece.part not in self.left_out]

    def told(self) -> str:
        """What was left out, and why; nothing where nothing was."""
        problems = [str(problem) for problem in self.left_out.values()]
        return "; ".join(problems[:_TOLD]) + (f"; and {len(problems) - _TOLD} more" if len(problems) > _TOLD else "")

    def _once(self, positions: Mapping[str, str], limit: int | None) -> list[Slice]:
        slices: list[Slice] = []

        def opened() -> Iterator[Opened]:
            left = limit
            for entry in self.folder.entries(lambda problem: self._leave_out(str(problem), problem)):
                if left is not None and left <= 0:
                    return
                one = None if entry.part in self.left_out else self._new_of(entry, positions.get(entry.part), left)
                if one is not None:
                    slices.append(one.slice)
                    left = None if left is None else left - one.slice.rows
                    yield one

        add_columns(self.columns(), opened(), self.stops, self._leave_out)
        return slices

    def _new_of(self, entry: Entry, position: str | None, limit: int | None) -> Opened | None:
        """The new rows of a file; None where there are none, or it is left out."""
        try:
            start = parse(position, entry.part)
            if start.finished_with(entry.size, entry.modified_ns):
                return None
            entry, form = held(entry), self.form_of(entry.part)
            span = form.count(entry, start, limit, abs(self.now - entry.modified_ns / 1e9))
            if span is not None and span.lost is not None and self.stops:
                raise Damaged(span.lost.why())
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
            raise problem
        self.left_out[part] = problem

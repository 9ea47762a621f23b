"""Parsing what can be parsed: a row that cannot costs only itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

_ENOUGH, _TOGETHER = 1000, 4096
Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class Flaw:
    """A row that cannot be parsed, and why."""

    row: int
    reason: str


@dataclass(slots=True)
class Salvage:
    """One pass over the rows of a slice, portion by portion, which knows how many of them were bad.

    Finding a bad row takes many attempts. After a thousand of them, and one for ten good ones, some thousand rows that
    fail together are not looked at one by one: their types are others, or this is another kind of file.
    """

    good: int = 0
    bad: int = 0

    def parsed(
        self, rows: Sequence[int], parse: Callable[[Sequence[int]], Parsed], flaws: Mapping[int, str], at_once: int
    ) -> Iterator[Parsed | Flaw]:
        """What ``parse`` makes of the rows in their order, at most ``at_once`` together, and those it cannot take.

        It raises pa.ArrowException or ValueError where it cannot. The rows in ``flaws`` are never given to it.
        """
        begin = 0
        for number, row in enumerate(rows) if flaws else ():
            if row in flaws:
                yield from self._portions(rows[begin:number], parse, at_once)
                self.bad += 1
                yield Flaw(row, flaws[row])
                begin = number + 1
        yield from self._portions(rows[begin:], parse, at_once)

    def _portions(
        self, rows: Sequence[int], parse: Callable[[Sequence[int]], Parsed], at_once: int
    ) -> Iterator[Parsed | Flaw]:
        for begin in range(0, len(rows), at_once):
            yield from self._halved(rows[begin : begin + at_once], parse)

    def _halved(self, rows: Sequence[int], parse: Callable[[Sequence[int]], Parsed]) -> Iterator[Parsed | Flaw]:
        """The rows, parsed; where that fails, each half by itself, down to the row that is at fault."""
        try:
            parsed = parse(rows)
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, ValueError) as exc:
            if len(rows) == 1:
                self.bad += 1
                yield Flaw(rows[0], str(exc))
                return
            if len(rows) <= _TOGETHER and self.bad > _ENOUGH + self.good // 10:
                yield from (Flaw(row, "many rows before it cannot be read, so it was not looked at") for row in rows)
                return
        else:
            self.good += len(rows)
            yield parsed
            return
        middle = len(rows) // 2
        yield from self._halved(rows[:middle], parse)
        yield from self._halved(rows[middle:], parse)

"""Rows that no round reads: those that appear behind what was read, and those without a place in the order.

Each position also says what was read up to it, on a line of its own: where that began, how many rows it has, how many
rows have no place, and how many of either were found to be lost since the position before. A row that appears behind is
found when the next rows are read, if it lies among those: the last ones, of one round or of many small ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from opmon.types import Slice

LOOKED_BACK = 100_000
"""Rounds of so many rows together are looked at for rows that appeared among them: counting more takes too long."""


@dataclass(frozen=True)
class Told:
    """What was read up to a position."""

    begin: str
    rows: int
    unplaced: int
    late: int = 0
    """Rows that appeared among those that were read before these."""
    without: int = 0
    """Rows without a place that appeared since."""


def told(position: str, read: Told) -> str:
    """A position with what was read up to it."""
    return f"{place(position)}\n{json.dumps(asdict(read))}"


def place(text: str) -> str:
    """A position alone.

    >>> place(told("after {}", Told("begin", 5, 0)))
    'after {}'
    """
    return text.partition("\n")[0]


def read_up_to(text: str) -> Told | None:
    """What was read up to a position; None where it does not say."""
    said = text.partition("\n")[2]
    return Told(**json.loads(said)) if said else None


def lost(slices: Sequence[Slice], late: str, without: str) -> Mapping[str, int]:
    """The rows that these slices tell of, under the two reasons."""
    found = [each for each in (read_up_to(piece.stop) for piece in slices) if each is not None]
    return +Counter({late: sum(each.late for each in found), without: sum(each.without for each in found)})

"""Which single rows are asked for again."""

from __future__ import annotations

from collections.abc import Sequence

from opmon.errors import InputError
from opmon.types import Slice


def require_rows(slices: Sequence[Slice], index: int, wanted: Sequence[int]) -> None:
    """An error unless the slice has the rows with these numbers."""
    if not 0 <= index < len(slices):
        raise InputError(f"there is no slice {index}; there are {len(slices)}")
    piece = slices[index]
    wrong = [row for row in wanted if not 0 <= row < piece.rows]
    if wrong:
        raise InputError(f"slice {index} ({piece.part}) has rows 0..{piece.rows - 1}; asked for {wrong[0]}")

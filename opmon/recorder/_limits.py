"""The limits of the buffer and of a file."""

from __future__ import annotations

from dataclasses import dataclass, fields

from opmon.errors import InputError


@dataclass(frozen=True, slots=True)
class Limits:
    """How much waits at the most, and how much makes a file: whichever of rows, bytes and seconds is reached first."""

    buffer_rows: int
    buffer_bytes: int
    rows_per_file: int
    bytes_per_file: int
    seconds_per_file: float

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int | float) or not size > 0:
                raise InputError(f"{name} must be greater than 0; got {size!r}")

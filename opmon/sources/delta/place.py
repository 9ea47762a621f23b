"""Where reading of a Delta table stopped."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opmon.errors import SourceError

BEGIN = "begin"
_TEXT = re.compile(r"version (\d+|-1), file (\d+), row (\d+)(?:; from the table at version (\d+))?")
_ALL = 10**9


@dataclass(frozen=True)
class Place:
    """Behind so many rows of a file of a version. Files of ``base`` are all that the table had then; of later versions
    those that they added. Base -1: nothing but what versions added; None: nothing was read."""

    base: int | None
    version: int = -1
    file: int = 0
    rows: int = 0

    @classmethod
    def behind(cls, version: int) -> Place:
        """Behind all that there was at a version."""
        return cls(-1, version, _ALL)

    @property
    def is_whole(self) -> bool:
        """Whether nothing of its version is left to read."""
        return self.file == _ALL

    def __str__(self) -> str:
        base = "" if self.base in (None, -1) else f"; from the table at version {self.base}"
        return f"version {self.version}, file {self.file}, row {self.rows}{base}"

    @classmethod
    def parse(cls, text: str) -> Place:
        if text == BEGIN:
            return cls(None)
        found = _TEXT.fullmatch(text)
        if found is None:
            raise SourceError(
                f"the position {text!r} was not written by the source delta. Was the monitor's source changed? Give "
                f"the monitor a new name."
            )
        version, file, rows, base = found.groups()
        return cls(-1 if base is None else int(base), int(version), int(file), int(rows))

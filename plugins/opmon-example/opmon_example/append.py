"""The action ``append``: a line of JSON for every event, in a file that other programs read."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from opmon.abc import Action
from opmon.errors import DeliveryError
from opmon.types import Document


@dataclass(frozen=True)
class Append(Action):
    """Appends the event as one line to ``path``; one that stands there already is not written again."""

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str

    def act(self, event: Document) -> None:
        file = Path(self.path)
        try:
            if self._holds(file, str(event["id"])):
                return
            line = json.dumps(dict(event), ensure_ascii=False) + "\n"
            handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "ab") as opened:
                opened.write(line.encode())
                opened.flush()
                os.fsync(opened.fileno())
        except OSError as exc:
            raise DeliveryError(f"{file} cannot be written: {exc.strerror or exc}") from exc

    def _holds(self, file: Path, identifier: str) -> bool:
        if not file.exists():
            return False
        with file.open(encoding="utf-8", errors="replace") as lines:
            return any(identifier in line and _id(line) == identifier for line in lines)


def _id(line: str) -> str | None:
    try:
        found = json.loads(line)
    except ValueError:  # the last line of a process that was killed while it wrote
        return None
    return str(found.get("id")) if isinstance(found, dict) else None

"""The label provider ``sheet``: one CSV file on a shared folder, which people fill in with a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, ClassVar

from opmon.abc import LabelProvider, Pulled, Said
from opmon.errors import UnavailableError
from opmon.types import Guide, Task

COLUMNS = ("task", "input", "shown", "label", "skip", "who", "when")


@dataclass(frozen=True)
class Sheet(LabelProvider):
    """Appends tasks to ``path/MONITOR.csv`` and reads what stands in its columns ``label`` (or ``skip``) and ``who``.

    opmon never rewrites the file: whoever saves it from a spreadsheet while tasks are appended wins, and the tasks that
    were lost by that are appended again.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str

    def bind(self, monitor: str, guide: Guide) -> Sheet:
        return replace(self, path=str(Path(self.path) / f"{monitor}.csv"))

    def check(self) -> str:
        return f"{self.path} has {len(self._rows())} tasks"

    def push(self, tasks: Sequence[Task]) -> None:
        there = {row["task"] for row in self._rows()}
        new = [task for task in tasks if task.key not in there]
        file, lines = Path(self.path), io.StringIO()
        table = csv.writer(lines)
        for task in new:
            table.writerow(
                [task.key, task.input_id, json.dumps(dict(task.payload), ensure_ascii=False), "", "", "", ""]
            )
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("ab+") as stream:
                stream.write(_before(stream, ",".join(COLUMNS)) + lines.getvalue().encode())
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as exc:
            raise UnavailableError(f"{file} cannot be written: {exc.strerror or exc}") from exc

    def pull(self, since: str) -> Pulled:
        """All that stands in the file, whenever it was written: what was heard before changes nothing."""
        said = []
        changed = datetime.fromtimestamp(Path(self.path).stat().st_mtime if Path(self.path).exists() else 0, UTC)
        for row in self._rows():
            label, skipped = (row["label"] or "").strip(), (row["skip"] or "").strip()
            if label or skipped:
                who, when = (row["who"] or "").strip() or "sheet", (row["when"] or "").strip()
                at = datetime.fromisoformat(when) if when else changed
                said.append(Said(row["task"], who, label or None, at))
        return Pulled(said, "")

    def reconcile(self, open_keys: Collection[str]) -> Collection[str]:
        return {row["task"] for row in self._rows()}

    def _rows(self) -> list[dict[str, str]]:
        try:
            with Path(self.path).open(encoding="utf-8-sig", newline="") as stream:
                return [row for row in csv.DictReader(stream) if row.get("when") is not None]  # the last may be half
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise UnavailableError(f"{self.path} cannot be read: {exc.strerror or exc}") from exc


def _before(stream: BinaryIO, header: str) -> bytes:
    """What is to be written first: the header of a new file, the end of a line that a killed process left."""
    if not stream.seek(0, os.SEEK_END):
        return f"{header}\r\n".encode()
    stream.seek(-1, os.SEEK_END)
    return b"" if stream.read(1) == b"\n" else b"\r\n"

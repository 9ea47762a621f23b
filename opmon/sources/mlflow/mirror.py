"""Copies of what was logged to MLflow, in a folder that is read like any other.

A copy bears the time at which its run ended. It is removed a day after it was read, and fetched again where a round
needs it once more. Monitors that read the same have one folder for it, whatever process they are in: what is there at
one moment may be gone at the next.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from opmon.errors import SourceError
from opmon.private import private_folder
from opmon.registry.logged import Logged
from opmon.sources._damage import Damaged
from opmon.sources._position import Position, parse

_TABLE = ".json"
_AS_LINES = ".jsonl"
_KEPT = 86_400.0
_FETCHING = ".fetching-"
_NAME = re.compile(r"[\w\-. =+@,()#]+(/[\w\-. =+@,()#]+)*")


def folder_for(where: str, what: str) -> Path:
    """A folder of this user's own for the copies of one experiment."""
    owner = Path(tempfile.gettempdir()) / f"opmon-mlflow-{os.getuid()}"
    private_folder(owner)
    if owner.stat().st_uid != os.getuid():
        raise SourceError(f"{owner} belongs to somebody else: set TMPDIR to a folder of opmon's user")
    place = owner / hashlib.sha256(f"{where}\n{what}".encode()).hexdigest()[:24]
    place.mkdir(mode=0o700, exist_ok=True)
    return place


@dataclass(frozen=True)
class Mirror:
    """The copies of one experiment's artifacts."""

    logged: Logged
    folder: Path

    def part_of(self, run_id: str, path: str) -> str:
        """The name of an artifact's copy: tables of ``mlflow.log_table`` become JSON lines."""
        return f"{run_id}/{path}{_AS_LINES if path.endswith(_TABLE) else ''}"

    def has(self, run_id: str, path: str, ended: int, positions: Mapping[str, str]) -> bool:
        """Whether an artifact of a run that ended was read, or there is a copy of it as it was in the end."""
        part = self.part_of(run_id, path)
        position = positions.get(part)
        if is_read(position, part) and parse(position, part).modified_ns == ended:
            return True
        status = status_of(self.folder / part)
        return status is not None and status.st_mtime_ns == ended

    def size(self, run_id: str, path: str) -> int | None:
        """The size of a copy; None where there is none, or a copy differs from what it was made of."""
        target = self.folder / self.part_of(run_id, path)
        status = status_of(target)
        return None if status is None or target.name != Path(path).name else status.st_size

    def copy(self, run_id: str, path: str, ended: int) -> None:
        """Let there be a copy of an artifact, whole at once."""
        if not _NAME.fullmatch(path) or ".." in path.split("/"):
            raise SourceError(f"the artifact {path!r} of run {run_id} has a name that cannot be a file's")
        target = self.folder / self.part_of(run_id, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_FETCHING, dir=self.folder) as place:
            found = self.logged.download(run_id, path, Path(place))
            if path.endswith(_TABLE):
                found = _as_lines(found, f"{path} of run {run_id}")
            os.utime(found, ns=(ended, ended))
            found.replace(target)

    def require(self, part: str, position: str) -> None:
        """Let there be the copy in which a position was reached."""
        if (self.folder / part).is_file():
            return
        run_id, _, name = part.partition("/")
        path = name.removesuffix(_AS_LINES) if name.endswith(_TABLE + _AS_LINES) else name
        self.copy(run_id, path, parse(position, part).modified_ns)

    def hidden(self, begin: int, end: int | None = None) -> dict[str, str]:
        """Positions behind copies of what ended before ``begin``, or after ``end``: others asked for them."""
        found = {}
        for part, status in _files(self.folder):
            if status.st_mtime_ns < begin or (end is not None and status.st_mtime_ns > end):
                position = Position(1, 1, status.st_size, status.st_mtime_ns)
                found[part] = str(position)
        return found

    def forget(self, positions: Mapping[str, str]) -> None:
        """Remove copies that were read, after a day."""
        long_ago = time.time() - _KEPT
        for part, status in _files(self.folder):
            if status.st_ctime < long_ago and is_read(positions.get(part), part):
                (self.folder / part).unlink(missing_ok=True)


def is_read(position: str | None, part: str) -> bool:
    """Whether nothing of a copy is left to read."""
    found = parse(position, part)
    return found.started and found.at == found.whole


def status_of(copy: Path) -> os.stat_result | None:
    """What is known of a copy; None where there is none (any more)."""
    try:
        return copy.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The copies that there are, by their names."""
    for place, folders, names in os.walk(folder):  # passes over folders that are gone by now
        folders[:] = [name for name in folders if not name.startswith(_FETCHING)]
        for path in (Path(place, name) for name in names):
            status = status_of(path)
            if status is not None:
                yield str(path.relative_to(folder)), status


def _as_lines(file: Path, shown: str) -> Path:
    """A table of columns and rows as JSON lines, always in the same way: rows that are added come behind."""
    try:
        table = json.loads(file.read_bytes())
        columns, rows = table["columns"], table["data"]
        lines = [json.dumps(dict(zip(columns, row, strict=True)), allow_nan=False) for row in rows]
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise Damaged(
            f"{shown} is no table as mlflow.log_table writes it: {str(exc)[:200]}. Say in 'artifacts' which are."
        ) from exc
    target = file.with_name(f"{file.name}{_AS_LINES}")
    target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return target

"""Label files: tasks go out, answers come in, as JSONL (one JSON object a line), CSV, or in Label Studio's own form.

What goes out is written by :mod:`opmon.labels.writing`. The same file comes back with ``label`` filled in; or any other
file that has ``task_key``, or ``monitor`` and ``input_id``, and ``label`` (or ``truth``); or what Label Studio exports.
The key binds a row to the database that asked. ``skip`` says "I cannot tell"; ``annotator`` and ``at`` say who and
when. A row without an answer is counted and left out.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal, get_args

from opmon.errors import InputError
from opmon.labels._parsing import Row, json_rows, lines, table_rows
from opmon.labels._uncollected import uncollected
from opmon.labels.rows import ImportedLabel, Refused, RowError, is_answered, label_of
from opmon.labels.studio.exported import exported_rows
from opmon.labels.writing import studio_configuration, write_csv, write_jsonl, write_studio
from opmon.private import new_private
from opmon.types import Guide, Task

__all__ = ["Format", "ImportedLabel", "LabelFile", "format_of", "read_labels", "write_tasks"]

Format = Literal["jsonl", "csv", "label-studio"]
FORMATS: tuple[Format, ...] = get_args(Format)

MAX_LINE = 32 * 1024 * 1024
MAX_FILE = 2 * 1024**3
_TOLD = 10
SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "label-studio",
}
ENDINGS: dict[Format, str] = {"jsonl": ".jsonl", "csv": ".csv", "label-studio": ".json"}
_WRITERS = {"jsonl": write_jsonl, "csv": write_csv, "label-studio": write_studio}


@dataclass(frozen=True, slots=True)
class LabelFile:
    """What a label file holds: the answers, and how many of its rows have none yet."""

    labels: tuple[ImportedLabel, ...]
    unanswered: int
    refused: tuple[Refused, ...] = ()
    """The rows that cannot be read, where they may be left out."""
    saved_at: datetime | None = field(default=None, compare=False)
    """When the file was saved, where it is one."""


def format_of(path: Path | str, format: Format | None = None) -> Format:
    """The format as given, else by the end of the file's name."""
    found = format or SUFFIXES.get(Path(path).suffix.lower())
    if found not in FORMATS:
        raise InputError(
            f"{path}: a label file is .jsonl, .ndjson, .csv, .tsv or Label Studio's .json; "
            f"or say which: --format {' or '.join(FORMATS)}"
        )
    return found


def write_tasks(
    tasks: Iterable[Task],
    target: Path | str | IO[str],
    format: Format | None = None,
    guides: Mapping[str, Guide] | None = None,
) -> int:
    """Write the tasks and give their number; ``guides`` by monitor are what annotators are told.

    A file appears whole or not at all; a stream is written as it comes. Beside a file of Label Studio's lies the
    labelling configuration of its project, ``.xml``.
    """
    told = guides or {}
    if not isinstance(target, Path | str):
        return _WRITERS[format or "jsonl"](tasks, target, told)
    tasks, chosen = list(tasks), format_of(target, format)
    if chosen == "label-studio" and (configuration := studio_configuration(tasks, told)) is not None:
        with _replacing(Path(target).with_suffix(".xml")) as stream:
            stream.write(configuration)
    with _replacing(Path(target)) as stream:
        return _WRITERS[chosen](tasks, stream, told)


def read_labels(
    source: Path | str | IO[str] | IO[bytes],
    format: Format | None = None,
    *,
    annotator: str = "import",
    monitor: str | None = None,
    partial: bool = False,
) -> LabelFile:
    """All answers of a file or stream, or one :class:`InputError` for all bad lines (the first ten in full).

    ``annotator`` and ``monitor`` count where a row names none. With ``partial`` bad lines are given back with the rest.
    """
    if not isinstance(source, Path | str):
        name = str(getattr(source, "name", "the input"))
        found = _read(source, format or format_of(name), name, annotator, monitor)
        return _complete(found, name, partial)
    chosen = format_of(source, format)
    try:
        with Path(source).open("rb") as stream:
            about = os.fstat(stream.fileno())
            if about.st_size > MAX_FILE:
                raise InputError(f"{source} is larger than {MAX_FILE:,} bytes; split it")
            with uncollected():
                found = _read(stream, chosen, str(source), annotator, monitor)
        saved_at = datetime.fromtimestamp(about.st_mtime, UTC)
        return replace(_complete(found, str(source), partial), saved_at=saved_at)
    except FileNotFoundError:
        raise InputError(f"there is no file {source}") from None
    except OSError as exc:
        raise InputError(f"{source} cannot be read: {exc.strerror or exc}") from exc


@dataclass(frozen=True, slots=True)
class TaskRows:
    """How many rows a file has of each task, by its key; rows that cannot be read are left out."""

    all: Counter[str]
    unanswered: Counter[str]


def task_rows(path: Path) -> TaskRows:
    """The tasks in a file; an error where it cannot be read as a whole."""
    with path.open("rb") as stream:
        found = [row for _, row in _rows(stream, format_of(path), str(path)) if not isinstance(row, RowError)]
    tasks = [row for row in found if row.get("task_key")]
    left = (str(row["task_key"]) for row in tasks if not is_answered(row))
    return TaskRows(Counter(str(row["task_key"]) for row in tasks), Counter(left))


def _read(stream: IO[str] | IO[bytes], format: Format, name: str, annotator: str, monitor: str | None) -> LabelFile:
    refused: list[Refused] = []
    labels: dict[tuple[object, ...], ImportedLabel] = {}
    unanswered = 0
    for line, row in _rows(stream, format, name):
        try:
            if isinstance(row, RowError):
                raise row
            label = label_of(row, line, annotator, monitor)
            if label is None:
                unanswered += 1
                continue
            before = labels.setdefault(label.key, label)
            if before is not label:
                raise RowError(f"answers the same task for the same annotator as line {before.line}")
        except RowError as exc:
            refused.append(Refused(line, str(exc)))
    return LabelFile(tuple(labels.values()), unanswered, tuple(refused))


def _complete(file: LabelFile, name: str, partial: bool) -> LabelFile:
    """The file, or an error where some of it cannot be read and nothing may be left out."""
    if partial or not file.refused:
        return file
    count = len(file.refused)
    more = f"\n  … and {count - _TOLD:,} more" if count > _TOLD else ""
    lines_are = "1 line is" if count == 1 else f"{count:,} lines are"
    told = "".join(f"\n  line {each.line} {each.why}" for each in file.refused[:_TOLD])
    raise InputError(f"{name}: {lines_are} wrong, so nothing was read:{told}{more}")


def _rows(stream: IO[str] | IO[bytes], format: Format, name: str) -> Iterator[tuple[int, Row]]:
    if format == "label-studio":
        return exported_rows(stream, name)
    rows = json_rows if format == "jsonl" else table_rows
    return rows(lines(stream, name, MAX_LINE, MAX_FILE), name)


@contextmanager
def _replacing(path: Path) -> Iterator[IO[str]]:
    """A stream whose content takes the place of ``path`` when all went well, and leaves nothing behind when not."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it")
    working = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        opened = new_private(working)
    except OSError as exc:
        raise InputError(f"{path} cannot be written: {exc.strerror or exc}") from exc
    try:
        with opened as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        working.replace(path)
    finally:
        working.unlink(missing_ok=True)

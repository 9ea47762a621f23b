"""Label files: tasks go out, answers come in, as JSONL (one JSON object a line) or CSV.

A task goes out as ``task_key, task_id, monitor, round, input_id``, an empty ``label``, and what the annotator is to
see: under ``payload`` in JSONL, in columns ``input.<name>`` in CSV. The same file comes back with ``label`` filled in;
or any other file that has ``task_key``, or ``monitor`` and ``input_id``, and ``label`` (or ``truth``). The key binds a
row to the database that asked. ``skip`` says "I cannot tell"; ``annotator`` and ``at`` say who and when. A row without
an answer is counted and left out.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from opmon.errors import InputError
from opmon.labels._parsing import json_rows, lines, table_rows
from opmon.labels.rows import ImportedLabel, RowError, as_json, cell, guarded, label_of
from opmon.private import new_private
from opmon.types import Task

__all__ = ["Format", "ImportedLabel", "LabelFile", "format_of", "read_labels", "write_tasks"]

Format = Literal["jsonl", "csv"]

MAX_LINE = 32 * 1024 * 1024
MAX_FILE = 2 * 1024**3
_TOLD = 10
SUFFIXES: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv"}
_TASK_COLUMNS = ("task_key", "task_id", "monitor", "round", "input_id")
_ANSWER_COLUMNS = ("label", "skip", "annotator")


@dataclass(frozen=True, slots=True)
class LabelFile:
    """What a label file holds: the answers, and how many of its rows have none yet."""

    labels: tuple[ImportedLabel, ...]
    unanswered: int


def format_of(path: Path | str, format: Format | None = None) -> Format:
    """The format as given, else by the end of the file's name."""
    found = format or SUFFIXES.get(Path(path).suffix.lower())
    if found not in ("jsonl", "csv"):
        raise InputError(f"{path}: a label file is .jsonl, .ndjson, .csv or .tsv; or say which: --format jsonl or csv")
    return found


def write_tasks(tasks: Iterable[Task], target: Path | str | IO[str], format: Format | None = None) -> int:
    """Write the tasks and give their number. A file appears whole or not at all; a stream is written as it comes."""
    if isinstance(target, Path | str):
        write = _writer(format_of(target, format))
        with _replacing(Path(target)) as stream:
            return write(tasks, stream)
    return _writer(format or "jsonl")(tasks, target)


def read_labels(
    source: Path | str | IO[str] | IO[bytes],
    format: Format | None = None,
    *,
    annotator: str = "import",
    monitor: str | None = None,
) -> LabelFile:
    """All answers of a file or stream, or one :class:`InputError` for all bad lines (the first ten in full).

    ``annotator`` and ``monitor`` count where a row names none.
    """
    if not isinstance(source, Path | str):
        name = str(getattr(source, "name", "the input"))
        return _read(source, format or format_of(name), name, annotator, monitor)
    chosen = format_of(source, format)
    try:
        with Path(source).open("rb") as stream:
            if os.fstat(stream.fileno()).st_size > MAX_FILE:
                raise InputError(f"{source} is larger than {MAX_FILE:,} bytes; split it")
            return _read(stream, chosen, str(source), annotator, monitor)
    except FileNotFoundError:
        raise InputError(f"there is no file {source}") from None
    except OSError as exc:
        raise InputError(f"{source} cannot be read: {exc.strerror or exc}") from exc


def task_keys(path: Path) -> frozenset[str]:
    """The keys of the tasks in a file, answered or not; rows that cannot be read have none."""
    rows = json_rows if format_of(path) == "jsonl" else table_rows
    with path.open("rb") as stream:
        found = [row for _, row in rows(lines(stream, str(path), MAX_LINE, MAX_FILE), str(path))]
    return frozenset(str(row["task_key"]) for row in found if not isinstance(row, RowError) and row.get("task_key"))


def _read(stream: IO[str] | IO[bytes], format: Format, name: str, annotator: str, monitor: str | None) -> LabelFile:
    problems: list[str] = []
    labels: dict[tuple[object, ...], ImportedLabel] = {}
    unanswered = 0
    rows = json_rows if format == "jsonl" else table_rows
    for line, row in rows(lines(stream, name, MAX_LINE, MAX_FILE), name):
        try:
            if isinstance(row, RowError):
                raise row
            label = label_of(row, line, annotator, monitor)
            if label is None:
                unanswered += 1
                continue
            if label.key in labels:
                raise RowError(f"answers the same task for the same annotator as line {labels[label.key].line}")
            labels[label.key] = label
        except RowError as exc:
            problems.append(f"line {line} {exc}")
    if problems:
        more = f"\n  … and {len(problems) - _TOLD:,} more" if len(problems) > _TOLD else ""
        count = "1 line is" if len(problems) == 1 else f"{len(problems):,} lines are"
        told = "".join(f"\n  {problem}" for problem in problems[:_TOLD])
        raise InputError(f"{name}: {count} wrong, so nothing was read:{told}{more}")
    return LabelFile(tuple(labels.values()), unanswered)


def _writer(format: Format) -> Callable[[Iterable[Task], IO[str]], int]:
    return _write_jsonl if format == "jsonl" else _write_csv


def _write_jsonl(tasks: Iterable[Task], stream: IO[str]) -> int:
    number = 0
    for task in tasks:
        out = {"task_key": task.key, "task_id": task.id, "monitor": task.monitor, "round": task.round,
               "input_id": task.input_id, "label": None, "payload": as_json(task.payload)}  # fmt: skip
        stream.write(json.dumps(out, ensure_ascii=False, allow_nan=False) + "\n")
        number += 1
    return number


def _write_csv(tasks: Iterable[Task], stream: IO[str]) -> int:
    tasks = list(tasks)
    names = list(dict.fromkeys(name for task in tasks for name in task.payload))
    stream.write("\ufeff")  # a spreadsheet takes the file for UTF-8 by this mark alone
    table = csv.writer(stream, lineterminator="\r\n")
    table.writerow([*_TASK_COLUMNS, *_ANSWER_COLUMNS, *(f"input.{name}" for name in names)])
    for task in tasks:
        known = [
            task.key,
            task.id,
            guarded(task.monitor),
            task.round,
            guarded(task.input_id),
            *("" for _ in _ANSWER_COLUMNS),
        ]
        table.writerow([*known, *(cell(task.payload.get(name)) for name in names)])
    return len(tasks)


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

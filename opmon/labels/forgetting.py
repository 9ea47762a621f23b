"""Taking tasks out of a file of tasks, in each of the forms in which opmon writes them."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Collection
from pathlib import Path

from opmon.errors import InputError
from opmon.labels._parsing import delimiter_of
from opmon.labels.files import format_of
from opmon.labels.rows import known_name, unguarded
from opmon.labels.studio.tasks import key_in


def without(path: Path, keys: Collection[str]) -> None:
    """Write the file again, whole, without these tasks, where it has any; when it was saved, as the answers in it were,
    stays. An error where a part of it cannot be read, which may show any of them."""
    about, content = path.stat(), path.read_bytes()
    try:
        left = _LEFT[format_of(path)](content.decode("utf-8-sig"), keys)
    except (ValueError, RecursionError, csv.Error) as exc:
        raise InputError(f"{path} cannot be read as a whole: {exc}") from exc
    if left is None:
        return
    partial = path.with_name(f".{path.name}.partial")
    encoding = "utf-8-sig" if content.startswith(b"\xef\xbb\xbf") else "utf-8"
    handle = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, about.st_mode & 0o777)
    with os.fdopen(handle, "w", encoding=encoding, newline="") as out:
        out.write(left)
    os.utime(partial, ns=(about.st_atime_ns, about.st_mtime_ns))
    partial.replace(path)


def _of_lines(text: str, keys: Collection[str]) -> str | None:
    """The text without the tasks; None where none of them is in it. A line ends where it does for whoever reads the
    answers: other signs that may end one stand inside of what is shown."""
    lines = io.StringIO(text, newline="\n").readlines()
    kept = [line for line in lines if not line.strip() or _key_in(line) not in keys]
    return "".join(kept) if len(kept) < len(lines) else None


def _key_in(line: str) -> str | None:
    told = json.loads(line)
    return str(told.get("task_key")) if isinstance(told, dict) else None


def _of_csv(text: str, keys: Collection[str]) -> str | None:
    mark = delimiter_of(text.partition("\n")[0])
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True))
    names = [known_name(name) or name for name in rows[0]] if rows else []
    if "task_key" not in names:
        raise InputError("its first line does not name the column task_key")
    place = names.index("task_key")
    kept = [row for row in rows if len(row) <= place or unguarded(row[place]) not in keys]
    if len(kept) == len(rows):
        return None
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=mark, lineterminator="\r\n" if "\r\n" in text else "\n").writerows(kept)
    return out.getvalue()


def _of_studio(text: str, keys: Collection[str]) -> str | None:
    tasks = json.loads(text)
    kept = [task for task in tasks if not isinstance(task, dict) or key_in(task) not in keys]
    return json.dumps(kept, ensure_ascii=False, indent=1) + "\n" if len(kept) < len(tasks) else None


_LEFT = {"jsonl": _of_lines, "csv": _of_csv, "label-studio": _of_studio}

"""Taking tasks out of a file of tasks, in each of the forms in which opmon writes them."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Collection
from pathlib import Path

from opmon.labels.files import format_of
from opmon.labels.rows import known_name, unguarded
from opmon.labels.studio.tasks import key_in


def without(path: Path, keys: Collection[str]) -> None:
    """Write the file again, whole, without these tasks; when it was saved, as the answers in it were, stays."""
    about = path.stat()
    partial = path.with_name(f".{path.name}.partial")
    encoding = "utf-8-sig" if path.read_bytes().startswith(b"\xef\xbb\xbf") else "utf-8"
    with path.open(encoding="utf-8-sig", newline="") as stream:
        text = stream.read()
    handle = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, about.st_mode & 0o777)
    with os.fdopen(handle, "w", encoding=encoding, newline="") as out:
        out.write(_LEFT[format_of(path)](text, keys))
    os.utime(partial, ns=(about.st_atime_ns, about.st_mtime_ns))
    partial.replace(path)


def _of_lines(text: str, keys: Collection[str]) -> str:
    kept = (line for line in text.splitlines(keepends=True) if not line.strip() or _key_in(line) not in keys)
    return "".join(kept)


def _key_in(line: str) -> str | None:
    told = json.loads(line)
    return str(told.get("task_key")) if isinstance(told, dict) else None


def _of_csv(text: str, keys: Collection[str]) -> str:
    dialect = csv.Sniffer().sniff(text.partition("\n")[0], ",;\t") if text.strip() else csv.excel
    rows = list(csv.reader(io.StringIO(text, newline=""), dialect))
    place = [known_name(name) or name for name in rows[0]].index("task_key")
    out = io.StringIO(newline="")
    csv.writer(out, dialect, lineterminator="\r\n" if "\r\n" in text else "\n").writerows(
        row for row in rows if len(row) <= place or unguarded(row[place]) not in keys
    )
    return out.getvalue()


def _of_studio(text: str, keys: Collection[str]) -> str:
    kept = [task for task in json.loads(text) if key_in(task) not in keys]
    return json.dumps(kept, ensure_ascii=False, indent=1) + "\n"


_LEFT = {"jsonl": _of_lines, "csv": _of_csv, "label-studio": _of_studio}

"""Gold files: inputs whose truth is known, as label files have them, with what annotators see of them.

JSONL: ``{"input_id": "g-1", "label": "cat", "payload": {…}}``. CSV: ``input_id,label,input.<name>,…``. ``prediction``
is what is shown as the model's answer, where the monitor shows it. What an export wrote and was answered will do.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opmon.errors import InputError
from opmon.labels._parsing import lines
from opmon.labels.files import SUFFIXES
from opmon.labels.rows import RowError, as_json, as_truth, known_name, name_in, unguarded
from opmon.private import new_private
from opmon.replies import is_nan
from opmon.types import Json
from opmon.wording import counted

MAX_LINE = 32 * 1024 * 1024
MAX_FILE = 512 * 1024 * 1024
MOST = 100_000
_DEEPEST = 20
_TOLD = 10
_INPUT = "input."


@dataclass(frozen=True, slots=True)
class Gold:
    """An input whose truth is known."""

    line: int
    input_id: str
    truth: str
    payload: Mapping[str, Json]
    prediction: str | None = None
    """What is shown as the model's answer."""


def read_gold(path: Path, canonical: Callable[[str], str | None]) -> tuple[Gold, ...]:
    """The inputs of a gold file, or one error for all that is wrong with it.

    ``canonical`` gives the class that a truth says by its name, or None where that is none.
    """
    found: dict[str, Gold] = {}
    problems: list[str] = []
    for line, row in _rows(path):
        try:
            if isinstance(row, RowError):
                raise row
            gold = _gold(row, line, canonical)
            if gold.input_id in found:
                raise RowError(f"is input {gold.input_id!r} again, which line {found[gold.input_id].line} has")
            found[gold.input_id] = gold
        except RowError as exc:
            problems.append(f"line {line} {exc}")
        if len(found) > MOST:
            raise InputError(f"{path} has more than {MOST:,} inputs; a few hundred are enough")
    if problems:
        more = f"\n  … and {len(problems) - _TOLD:,} more" if len(problems) > _TOLD else ""
        told = "".join(f"\n  {problem}" for problem in problems[:_TOLD])
        raise InputError(f"{path}: {counted(len(problems), 'line')} of this gold file cannot be used:{told}{more}")
    if not found:
        raise InputError(f"{path} holds no input; a line is such as {_EXAMPLE}")
    return tuple(found.values())


def append(path: Path, new: Sequence[Gold]) -> None:
    """Write these behind what the file holds, as JSONL or CSV by its name; it is there whole or as it was."""
    before = path.read_bytes() if path.exists() else b""
    if before and not before.endswith(b"\n"):
        before += b"\n"
    working = path.with_name(f".{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with new_private(working) as stream:
            stream.write(before.decode())
            stream.write("".join(f"{_written(gold)}\n" for gold in new))
            stream.flush()
            os.fsync(stream.fileno())
        working.replace(path)
    finally:
        working.unlink(missing_ok=True)


_EXAMPLE = '{"input_id": "g-1", "label": "cat", "payload": {"text": "…"}}'


def _written(gold: Gold) -> str:
    row: dict[str, Json] = {"input_id": gold.input_id, "label": gold.truth, "payload": as_json(gold.payload)}
    if gold.prediction is not None:
        row["prediction"] = gold.prediction
    return json.dumps(row, ensure_ascii=False)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object] | RowError]]:
    kind = SUFFIXES.get(path.suffix.lower())
    if kind not in ("jsonl", "csv"):
        raise InputError(f"{path}: a gold file is .jsonl, .ndjson, .csv or .tsv")
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size > MAX_FILE:
                raise InputError(f"{path} is larger than {MAX_FILE:,} bytes")
            text = lines(stream, str(path), MAX_LINE, MAX_FILE)
            yield from _json_rows(text) if kind == "jsonl" else _table_rows(text, path)
    except FileNotFoundError:
        raise InputError(f"there is no gold file {path}") from None
    except OSError as exc:
        raise InputError(f"the gold file {path} cannot be read: {exc.strerror or exc}") from exc


def _json_rows(text: Iterator[str]) -> Iterator[tuple[int, Mapping[str, object] | RowError]]:
    for number, line in enumerate(text, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            yield number, row if isinstance(row, dict) else RowError(f"is no JSON object, such as {_EXAMPLE}")
        except RecursionError:
            yield number, RowError("is nested too deeply")
        except ValueError as exc:
            yield number, RowError(f"is no JSON object: {exc}")


def _table_rows(text: Iterator[str], path: Path) -> Iterator[tuple[int, Mapping[str, object] | RowError]]:
    table = csv.reader(text, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
    header: list[str] | None = None
    try:
        for values in table:
            if header is None:
                header = values
            elif len(values) != len(header):
                yield table.line_num, RowError(f"has {len(values)} values for {len(header)} columns")
            elif any(values):
                yield table.line_num, _of_columns(dict(zip(header, map(unguarded, values), strict=True)))
    except csv.Error as exc:
        yield table.line_num, RowError(f"is no row of a table: {exc}")


def _of_columns(row: Mapping[str, str]) -> dict[str, object]:
    """A row of a table as the same row in JSON."""
    payload = {name.removeprefix(_INPUT): _value(text) for name, text in row.items() if name.startswith(_INPUT)}
    rest: dict[str, object] = {name: text for name, text in row.items() if not name.startswith(_INPUT)}
    return rest | {"payload": payload}


def _value(text: str) -> Json:
    """A cell as JSON: what is written as a number is one.

    >>> _value("0.5"), _value("007"), _value("cat"), _value("")
    (0.5, '007', 'cat', None)
    """
    if not text:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if is_number or isinstance(value, list | dict) else text


def _gold(row: Mapping[str, object], line: int, canonical: Callable[[str], str | None]) -> Gold:
    known: dict[str, object] = {}
    for name, value in row.items():
        own = known_name(name) or name
        if own in known and known[own] not in (None, "") and value not in (None, "") and known[own] != value:
            raise RowError(f"says {own} twice, {known[own]!r} and {value!r}")
        known[own] = value if known.get(own) in (None, "") else known[own]
    input_id, truth, payload = name_in(known, "input_id"), as_truth(known.get("label")), known.get("payload")
    if input_id is None:
        raise RowError("has no input_id")
    if len(input_id) > 1000:
        raise RowError("has an input_id of more than 1,000 characters")
    if truth is None:
        raise RowError(f"is input {input_id!r} without its truth: fill in label")
    known_truth = canonical(truth)
    if known_truth is None:
        raise RowError(f"is input {input_id!r} with the truth {truth!r}, which nobody can answer")
    if not isinstance(payload, Mapping) or not payload:
        raise RowError(f"is input {input_id!r} with nothing that annotators could see: fill in payload")
    shown = as_truth(known.get("prediction"))
    if is_nan(shown) and canonical("nan") is None:
        shown = None
    return Gold(line, input_id, known_truth, _checked(payload, input_id), shown)


def _checked(payload: Mapping[str, object], input_id: str) -> Mapping[str, Json]:
    """The payload, where a database can hold it."""
    if _depth(payload) > _DEEPEST:
        raise RowError(f"is input {input_id!r} with a payload nested more than {_DEEPEST} deep")
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError as exc:
        raise RowError(f"is input {input_id!r} with a payload that JSON cannot hold: {exc}") from exc
    if "\\u0000" in text:
        raise RowError(f"is input {input_id!r} with the character U+0000 in its payload, which is no text")
    checked: Mapping[str, Json] = json.loads(text)
    return checked


def _depth(value: object) -> int:
    """How deep a value is nested, as far as it matters."""
    depth, level = 0, [value]
    while level and depth <= _DEEPEST:
        depth += 1
        inner = [each.values() if isinstance(each, Mapping) else each for each in level]
        level = [one for each in inner if not isinstance(each, str) and hasattr(each, "__iter__") for one in each]
    return depth

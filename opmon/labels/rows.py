"""One row of a label file: what it may hold, and what is wrong with it. Pure."""

from __future__ import annotations

import base64
import json
import math
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from opmon.replies import is_blank, is_nan
from opmon.types import Json

ALIASES: Mapping[str, str] = {"task": "task_id", "truth": "label"}
KNOWN = ("task_key", "task_id", "monitor", "round", "input_id", "label", "skip", "annotator", "at", "why", "seconds")
LONGEST_TEXT = 10_000
_LONGEST_NAME = 200
_LONGEST_WHY = 2000
_LARGEST_ID = 2**63 - 1
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
_LONGEST_CELL = 32_000  # a spreadsheet's cell holds 32,767 characters
_YES, _NO = ("true", "yes", "1", "x"), ("", "false", "no", "0")


class RowError(ValueError):
    """What is wrong with one row."""


class ImportedLabel(NamedTuple):
    """What one line of a label file says of a task: a tuple, for there may be a million. ``truth`` is None for a skip.

    All that the line says of its task is kept, because it must all agree (:func:`opmon.store.matching.match`).
    """

    line: int
    truth: str | None
    task_id: int | None = None
    monitor: str | None = None
    input_id: str | None = None
    annotator: str = "import"
    at: datetime | None = None
    """When it was said, in the file's words; None where the file does not say."""
    task_key: str | None = None
    round: int | None = None
    why: str | None = None
    """Why it was skipped."""
    seconds: float | None = None
    """How long it took."""

    @property
    def key(self) -> tuple[object, ...]:
        """The task and the annotator, which may stand in a file once."""
        if self.task_key is not None:
            return self.task_key, self.annotator
        if self.task_id is not None:
            return self.task_id, self.annotator
        return self.monitor, self.round, self.input_id, self.annotator


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that cannot be taken, and why."""

    line: int
    why: str
    label: ImportedLabel | None = None
    """What it says, where that could be read."""


def known_name(name: str) -> str | None:
    """The column's own name, or None for a column that means nothing here.

    >>> [known_name(name) for name in ("Task ID", "truth", "input.text")]
    ['task_id', 'label', None]
    """
    if name in KNOWN:
        return name
    plain = name.strip().lower().replace(" ", "_")
    known = ALIASES.get(plain, plain)
    return known if known in KNOWN else None


def row_of(pairs: Iterator[tuple[str, object]]) -> dict[str, object]:
    """The known columns of a row under their own names; the others are left out."""
    row: dict[str, object] = {}
    for name, value in pairs:
        known = known_name(name)
        if known is None:
            continue
        if known in row and not _empty(row[known]) and not _empty(value) and row[known] != value:
            raise RowError(f"says {known} twice, {row[known]!r} and {value!r}")
        if known not in row or _empty(row[known]):
            row[known] = value
    return row


def label_of(row: Mapping[str, object], line: int, annotator: str, monitor: str | None) -> ImportedLabel | None:
    """The label of a row, or None where it holds no answer yet."""
    key, task_id, input_id = name_in(row, "task_key"), _whole(row, "task_id"), name_in(row, "input_id")
    said = name_in(row, "monitor")
    if said is not None and monitor is not None and said != monitor:
        raise RowError(f"is of monitor {said!r}, and {monitor!r} was asked for")
    monitor = said or monitor
    if key is None and task_id is None and input_id is None:
        raise RowError("names neither a task_key nor an input_id")
    if key is None and task_id is None and monitor is None:
        raise RowError(f"names input_id {input_id!r} without its monitor; add a column monitor or a task_key")
    truth, skipped = as_truth(row.get("label")), _skip(row.get("skip"))
    if truth is not None and skipped:
        raise RowError(f"holds a label, {truth!r}, and says skip; keep one of them")
    if truth is None and not skipped:
        return None
    who, at = name_in(row, "annotator") or annotator, _at(row.get("at"))
    why, seconds = _why(row.get("why")), _seconds(row.get("seconds"))
    return ImportedLabel(line, truth, task_id, monitor, input_id, who, at, key, _whole(row, "round"), why, seconds)


def is_answered(row: Mapping[str, object]) -> bool:
    """Whether a row holds something where an answer belongs."""
    return not is_blank(row.get("label")) or str(row.get("skip") or "").strip().lower() not in _NO


def guarded(text: str) -> str:
    """The text so that no spreadsheet takes it for a formula; :func:`unguarded` is the way back.

    >>> [guarded(text) for text in ("=1+1", "-5", "cat", "'quoted'")]
    ["'=1+1", "'-5", 'cat', "''quoted'"]
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def unguarded(text: str) -> str:
    """
    >>> [unguarded(text) for text in ("'=1+1", "'tis", "cat")]
    ['=1+1', "'tis", 'cat']
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def cell(value: object) -> str | float:
    """A payload's value as a cell of a table."""
    plain = as_json(value)
    if plain is None:
        return ""
    if isinstance(plain, bool | int | float):
        return plain
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return guarded(text) if len(text) <= _LONGEST_CELL else "(too long for a cell; export as JSONL to see it)"


def as_json(value: object) -> Json:
    """A payload's value as JSON: bytes, such as pictures, become ``{"base64": …}``, NaN becomes null."""
    if isinstance(value, bytes | bytearray):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value).encode(errors="backslashreplace").decode()  # half a surrogate pair cannot be written


def _empty(value: object) -> bool:
    return is_blank(value) or is_nan(value)


def as_truth(value: object) -> str | None:
    """An answer as text; None where there is none. The text ``nan`` may be a class: whoever knows them says so."""
    if value is None or is_blank(value):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise RowError(f"label must be text or a finite number; got {value}")
    if isinstance(value, str | int | float):
        return _text("label", str(value).strip(), LONGEST_TEXT)
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        return _text("label", json.dumps(value, ensure_ascii=False), LONGEST_TEXT)
    raise RowError(f"label must be text, a number or a list of classes; got {_shown(value)}")


def _skip(value: object) -> bool:
    if value is None:  # here and below what a row does not say: there may be a million of them
        return False
    plain = "" if _empty(value) else str(value).strip().lower()
    if plain not in (*_YES, *_NO):
        raise RowError(f"skip must be true or false; got {_shown(value)}")
    return plain in _YES


def _whole(row: Mapping[str, object], key: str) -> int | None:
    value = row.get(key)
    if value is None or _empty(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip().removesuffix(".0")
    if isinstance(value, bool) or not (
        text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= _LARGEST_ID
    ):
        raise RowError(f"{key} must be a whole number above 0; got {_shown(value)}")
    return int(text)


def name_in(row: Mapping[str, object], key: str) -> str | None:
    value = row.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RowError(f"{key} must be text; got {_shown(value)}")
    text = _text(key, str(value), LONGEST_TEXT if key == "input_id" else _LONGEST_NAME)
    return (text if key == "input_id" else text.strip()) or None


def _why(value: object) -> str | None:
    return None if value is None or _empty(value) else _text("why", str(value).strip(), _LONGEST_WHY)


def _seconds(value: object) -> float | None:
    if value is None or _empty(value):
        return None
    try:
        seconds = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise RowError(f"seconds must be a number of seconds; got {_shown(value)}")
    return seconds


def _at(value: object) -> datetime | None:
    if value is None or _empty(value):
        return None
    moment = moment_in(value.strip()) if isinstance(value, str) else None
    if moment is None or moment.tzinfo is None:
        raise RowError(f"at must be a time with its zone, such as 2026-11-18T08:00:00Z; got {_shown(value)}")
    return moment


def moment_in(text: str) -> datetime | None:
    """The moment that a text says; None where it says none, or one that has no time of day in UTC.

    >>> moment_in("0001-01-01T00:00:00+05:00"), moment_in("soon"), moment_in("2026-11-18T08:00:00Z").hour
    (None, None, 8)
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment


def _text(key: str, text: str, longest: int) -> str:
    if len(text) > longest:
        raise RowError(f"{key} is longer than {longest:,} characters")
    if text.isprintable():  # as nearly all are: there may be a million
        return text
    odd = next((char for char in text if unicodedata.category(char) in ("Cc", "Cs") and char not in "\t\n\r"), None)
    if odd is not None:
        raise RowError(f"{key} holds the character U+{ord(odd):04X}, which is no text")
    return text


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"

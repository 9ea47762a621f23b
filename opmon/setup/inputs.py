"""The columns of a log that a model may take: by name, then by similar names, then by shape."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from opmon.scoring.inputs.lists import is_listed
from opmon.scoring.session import Tensor
from opmon.setup.choice import Choice
from opmon.setup.log import Log
from opmon.setup.roles import is_aside
from opmon.stores import SCHEMES, scheme_of
from opmon.types import Signature

_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")


@dataclass(frozen=True)
class Fit:
    """One way to feed a model, and the columns that it takes."""

    choices: tuple[Choice, ...]
    columns: tuple[str, ...]


def fits_graph(takes: Sequence[Tensor], signature: Signature | None, log: Log, source: str) -> Iterator[Fit]:
    """The ways to feed the inputs of an ONNX graph, best first."""
    names = () if signature is None else signature.names
    if len(takes) > 1:
        yield from _by_names([item.name for item in takes], log)
        return
    (only,) = takes
    size = math.prod(each for each in only.shape[1:] if each is not None)
    if len(names) > 1 or (names and size == 1):
        yield from _by_names(names, log)
    for listed in _listed(log, only.name, size if None not in only.shape[1:] else None):
        yield Fit((Choice(("inputs", "tensor"), listed, f"lists of numbers, as {only} takes"),), (listed,))
    if only.kind == "string":
        yield from _texts(log, only.name)
    elif len(only.shape) in (3, 4):
        yield from _pictures(log, source)
    elif size == 1 and only.name in log.rows.column_names:
        yield Fit((), (only.name,))
    if only.kind != "string":
        yield from _as_many_numbers(log, size if None not in only.shape[1:] else None)


def fits_flavor(signature: Signature | None, log: Log, source: str) -> Iterator[Fit]:
    """The ways to feed a model that MLflow runs, best first."""
    if signature is not None and signature.names:
        yield from _by_names(signature.names, log)
    elif signature is not None and len(signature.tensors) > 1:
        yield from _by_names([name or "" for name, _, _ in signature.tensors], log)
    elif signature is not None:
        name, kind, shape = signature.tensors[0]
        size = math.prod(shape[1:]) if all(each > 0 for each in shape[1:]) else None
        for listed in _listed(log, name or "", size):
            yield Fit((Choice(("inputs", "tensor"), listed, "lists of numbers, as the signature says"),), (listed,))
        if len(shape) in (3, 4):
            yield from _pictures(log, source)
        if kind in ("str", "object", "string"):
            yield from _texts(log, name or "")
        yield from _as_many_numbers(log, size)
    else:
        names = [name for name in log.rows.column_names if not is_aside(log, name)]
        why = "the model has no signature, and these are the columns that are left: correct them, in its order"
        if names:
            yield Fit((Choice(("inputs", "features"), names, why, guessed=True),), tuple(names))


def _by_names(names: Sequence[str], log: Log) -> Iterator[Fit]:
    """Columns of these names, in whatever case and punctuation."""
    columns = log.rows.column_names
    if set(names) <= set(columns):
        yield Fit((), tuple(names))
        return
    found = [name if name in columns else _alike(name, columns) for name in names]
    there = [name for name in found if name is not None]
    if len(set(there)) == len(names):
        told = [f"{name} is {own}" for name, own in zip(there, names, strict=True) if name != own]
        why = f"in the model's order, which calls them otherwise: {', '.join(told[:3])}{', …' if told[3:] else ''}"
        yield Fit((Choice(("inputs", "features"), there, why),), tuple(there))


def _alike(name: str, columns: Sequence[str]) -> str | None:
    """The only column whose name has the same letters and digits; else the only field inside of a column."""
    found = [column for column in columns if _bare(column) == _bare(name)]
    found = found or [column for column in columns if _bare(column.rpartition(".")[2]) == _bare(name)]
    return found[0] if len(found) == 1 else None


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _listed(log: Log, name: str, size: int | None) -> list[str]:
    """Columns with lists of so many numbers; one named like the input comes first."""
    found = []
    for column in log.rows.column_names:
        values = log.column(column)
        if is_listed(values.type) and (size is None or _length(values) == size):
            found.append(column)
    return sorted(found, key=lambda column: (column != name, _bare(column) != _bare(name), is_aside(log, column)))


def _length(values: pa.Array) -> int:
    """How many numbers the first list has, in all its dimensions."""
    first: Any = next((value.as_py() for value in values if value.is_valid), [])
    count = 1
    while isinstance(first, list):
        count *= len(first)
        first = first[0] if first else None
    return count


def _texts(log: Log, name: str) -> Iterator[Fit]:
    texts = [column for column in log.rows.column_names if log.is_text(column) and not is_aside(log, column)]
    called = [column for column in texts if _bare(column) == _bare(name)]
    for column in called or sorted(texts, key=lambda text: -_letters(log, text)):
        why = "the text that the model reads" if called or len(texts) == 1 else "the longest text of the log"
        choice = Choice(("inputs", "features"), [column], why, guessed=not called and len(texts) > 1)
        yield Fit((choice,), (column,))


def _letters(log: Log, name: str) -> int:
    return sum(len(value) for value in log.column(name).slice(0, 100).to_pylist() if value)


def _pictures(log: Log, source: str) -> Iterator[Fit]:
    """A column with encoded pictures, or with paths of them."""
    for name in log.rows.column_names:
        values = log.column(name)
        first = next((value.as_py() for value in values if value.is_valid), None)
        column = Choice(("inputs", "image", "column"), name)
        scale = Choice(
            ("inputs", "image", "scale"),
            1 / 255,
            "and mean: [0.0], std: [1.0]: set what the model was trained with",
            guessed=True,
        )
        if isinstance(first, bytes) or (isinstance(first, dict) and {"bytes", "path"} & set(first)):
            yield Fit((column, scale), (name,))
        elif isinstance(first, str) and _is_picture(first):
            in_text = Choice(("inputs", "image", "column"), name, "pictures as base64")
            yield Fit((in_text, scale), (name,))
        elif isinstance(first, str) and first.lower().endswith(_PICTURES):
            folder = _above(values, source)
            if folder is not None:
                below = Choice(("inputs", "image", "folder"), folder, "the pictures of the log are below it")
                yield Fit((column, below, scale), (name,))


def _is_picture(text: str) -> bool:
    """Whether a text is a picture in base64, by how such files begin.

    >>> _is_picture("iVBORw0KGgoAAAANSUhEUgAAABwA"), _is_picture("data:image/gif;base64,R0lGOD"), _is_picture("a.png")
    (True, True, False)
    """
    return text.startswith(("data:image/", "iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "Qk0", "SUkqA", "TU0AK"))


def _above(values: pa.Array, source: str) -> str | None:
    """The folder that holds a column's pictures: the one their URLs share, or their paths begin from."""
    names = [name for name in values.drop_null().to_pylist() if isinstance(name, str)]
    if scheme_of(names[0]) is not None:
        folders = zip(*(name.split("/")[:-1] for name in names), strict=False)
        shared = "/".join(same[0] for same in itertools.takewhile(lambda parts: len(set(parts)) == 1, folders))
        return shared if scheme_of(shared) in SCHEMES and shared.partition("://")[2] else None
    if scheme_of(source) is not None:
        return None
    path = Path(source)
    start = path if path.is_dir() else path.parent
    found = next((each for each in (start, *start.parents) if (each / names[0]).is_file()), None)
    return None if found is None else str(found)


def _as_many_numbers(log: Log, size: int | None) -> Iterator[Fit]:
    """The columns with numbers that are left, where they are as many as the model takes."""
    numbers = [name for name in log.rows.column_names if log.is_number(name) and not is_aside(log, name)]
    if numbers and size in (None, len(numbers)):
        why = "the columns with numbers in the order of the log, as nothing names those of the model: is it its order?"
        yield Fit((Choice(("inputs", "features"), numbers, why, guessed=True),), tuple(numbers))

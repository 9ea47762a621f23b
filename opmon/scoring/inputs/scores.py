"""The scores that production logged, one for each class: a column each, a list, a struct, a map, or text with JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.scoring.inputs.columns import decoded
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Json

Matrix = NDArray[np.float64]


class Misfit(SourceError):
    """None of some inputs has a score that is wanted, and ``rows`` of them hold others."""

    def __init__(self, message: str, rows: int) -> None:
        super().__init__(message)
        self.rows = rows


def scores_of(
    names: Sequence[str],
    columns: Sequence[pa.Array],
    classes: tuple[str, ...] | None,
    spellings: Spellings = AS_SPELT,
    one_class: bool = True,
) -> tuple[Matrix, tuple[str, ...] | None]:
    """One row of scores for each input, NaN where they are missing or not as many as there are classes.

    And the names of the classes, where the columns say them. ``names`` are those of the columns, for messages. One
    number is that of the second of two classes, where each input is of ``one_class``. A :class:`Misfit` where there are
    scores, and none that are wanted.
    """
    if len(columns) > 1:
        if classes is not None and len(classes) != len(columns):
            raise SourceError(
                f"columns.scores names {len(columns)} columns, and there are {len(classes)} classes "
                f"({', '.join(classes[:10])}); name one column for each class, in their order"
            )
        return np.column_stack([_numbers(*pair) for pair in zip(names, columns, strict=True)]), classes
    name, column = names[0], decoded(columns[0])
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _of_json(name, column, classes, spellings, one_class)
    if pa.types.is_struct(kind):
        fields = {spellings.name(field.name): column.field(place) for place, field in enumerate(kind)}
        scores = {key: _numbers(f"{name}.{key}", _under(column, part)) for key, part in fields.items()}
        held, missing = _held(scores, len(column)), [label for label in classes or () if label not in scores]
        if missing and held.any():
            raise _misfit(name, missing, tuple(scores), int(held.sum()))
        return _by_name(name, scores, tuple(scores), held, classes)
    if pa.types.is_map(kind):
        return _of_map(name, column, classes, spellings)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _of_list(name, column, classes, one_class), classes
    if classes is not None and len(classes) > 1 and not one_class:
        raise SourceError(
            f"column {name!r} holds one number for each input, and each of {len(classes)} classes has a score of its "
            f"own; name a column for each in columns.scores, or one with lists"
        )
    return _numbers(name, column)[:, None], classes


def _under(struct: pa.Array, part: pa.Array) -> pa.Array:
    """A field of a struct, with no value where the struct has none."""
    return pc.if_else(struct.is_valid(), part, None) if struct.null_count else part


def _numbers(name: str, column: pa.Array) -> Matrix:
    """The numbers of a column; NaN where there is none."""
    column = decoded(column)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise SourceError(f"column {name!r} is {column.type}, and a score is a number; correct columns.scores")
    try:
        return np.asarray(
            pc.fill_null(pc.cast(column, pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False)
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
        raise SourceError(f"column {name!r} does not hold numbers ({exc}); correct columns.scores") from exc


def _of_list(name: str, column: pa.Array, classes: tuple[str, ...] | None, one_class: bool) -> Matrix:
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False))
    width = len(classes) if classes is not None else int(lengths.max(initial=0))
    if one_class and width == 2 and (lengths == 1).any() and not (lengths == 2).any():
        width = 1  # one number tells two classes apart
    good = (lengths == width) & np.asarray(column.is_valid())
    if not good.any() and lengths.any():
        raise Misfit(
            f"column {name!r} holds lists of {int(lengths.max())} numbers, and there are {width} classes; name the "
            f"classes in the order of the list",
            int((lengths > 0).sum()),
        )
    flat = _numbers(name, column.filter(pa.array(good)).flatten())
    matrix = np.full((len(column), width), np.nan)
    matrix[good] = flat.reshape(int(good.sum()), width)
    return matrix


def _by_name(
    name: str, scores: dict[str, Matrix], keys: Sequence[str], held: NDArray[np.bool_], classes: tuple[str, ...] | None
) -> tuple[Matrix, tuple[str, ...]]:
    """The scores by class, out of those under ``keys``; ``held`` says which inputs have any.

    A class of which none of them has a score may have one in other inputs of the same log.
    """
    wanted = tuple(keys) if classes is None else classes
    if not wanted or (held.any() and not any(label in scores for label in wanted)):
        raise _misfit(name, wanted, keys, int(held.sum()))
    none = np.full(len(held), np.nan)
    return np.column_stack([scores.get(label, none) for label in wanted]), wanted


def _misfit(name: str, missing: Sequence[str], keys: Sequence[str], rows: int) -> Misfit:
    return Misfit(
        f"column {name!r} has no score of {', '.join(missing[:10]) or 'any class'}; it has: "
        f"{', '.join(keys[:10])}. Name the classes as they are called there: classes: {{name: spelling}}",
        rows,
    )


def _of_map(
    name: str, column: pa.Array, classes: tuple[str, ...] | None, spellings: Spellings
) -> tuple[Matrix, tuple[str, ...]]:
    keys = pc.unique(column.keys).to_pylist()
    scores = {spellings.name(str(key)): _numbers(f"{name}.{key}", pc.map_lookup(column, key, "first")) for key in keys}
    return _by_name(name, scores, tuple(scores), _held(scores, len(column)), classes)


def _held(scores: dict[str, Matrix], rows: int) -> NDArray[np.bool_]:
    """Which of so many inputs have any score."""
    return np.asarray(np.any([np.zeros(rows, dtype=bool), *map(np.isfinite, scores.values())], axis=0))


def _of_json(
    name: str, column: pa.Array, classes: tuple[str, ...] | None, spellings: Spellings, one_class: bool
) -> tuple[Matrix, tuple[str, ...] | None]:
    """The scores in text that holds a number, a list or an object; any other text has none."""
    rows = [_parsed(text) for text in column.to_pylist()]
    if any(isinstance(row, dict) for row in rows):
        parts = [
            {spellings.name(key): value for key, value in row.items()} if isinstance(row, dict) else {} for row in rows
        ]
        keys = dict.fromkeys(key for row in parts for key in row)
        there = [label for label in classes or keys if label in keys]
        scores = {label: np.array([_number(row.get(label)) for row in parts]) for label in there}
        return _by_name(name, scores, tuple(keys), np.array([bool(row) for row in parts]), classes)
    lists = [row if isinstance(row, list) else None if row is None else [row] for row in rows]
    numbers = pa.array(
        [None if row is None else [_number(value) for value in row] for row in lists], pa.list_(pa.float64())
    )
    return _of_list(name, numbers, classes, one_class), classes


def _parsed(text: str | None) -> Json:
    if text is None or len(text) > 1_000_000 or text.count("[") + text.count("{") > 64:
        return None
    try:
        document: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")

"""The entries of the buffer: one record, or a batch of records."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from opmon.recorder._ids import new_id
from opmon.recorder._owned import Block, Unwritable, owned, size

if TYPE_CHECKING:
    import pandas as pd

OWN = ("id", "timestamp", "prediction", "scores", "model_version", "inclusion")
"""The columns that every file has beside the inputs' own."""
_NANOSECONDS = 1e15
"""A number of seconds that large is meant as nanoseconds."""
_NO_TABLES = frozenset({dict, list, tuple, str, bytes})
Row = dict[str, object]
Record = tuple[str, object, object, object, object, "str | None"]
"""Key, time, input, prediction, scores and version."""


class Entry(ABC):
    """One or more records that wait together."""

    __slots__ = ("arrived", "inclusion", "rows", "size")

    def __init__(self, rows: int, size: int) -> None:
        self.rows, self.size = rows, size
        self.arrived = time.monotonic()
        self.inclusion = 1.0

    @abstractmethod
    def unpacked(self) -> Iterator[Row]:
        """The columns of each record. Called by the thread that writes; may raise what it likes."""


class One(Entry):
    """One record, copied."""

    __slots__ = ("_at", "_inputs", "_key", "_prediction", "_scores", "_version")

    def __init__(
        self, key: str, at: object, inputs: object, prediction: object, scores: object, version: str | None
    ) -> None:
        self._key, self._version, self._at = key, version, moment(at)
        self._inputs = given = owned(single(inputs))
        self._prediction = answer = owned(prediction)
        self._scores = shares = owned(scores)
        self.rows, self.inclusion, self.arrived = 1, 1.0, time.monotonic()
        self.size = 250 + size(given) + size(answer) + size(shares)

    def unpacked(self) -> Iterator[Row]:
        yield row(self._key, self._at, self._inputs, self._prediction, self._scores, self._version)


class Many(Entry):
    """A batch of records with one time: a table, a matrix, or a sequence of inputs; each copied as a whole."""

    __slots__ = ("_held", "keys")

    def __init__(
        self,
        inputs: object,
        predictions: object,
        scores: object,
        keys: Sequence[object] | None,
        at: object,
        version: str | None,
    ) -> None:
        held = copied(inputs)
        rows = count(held)
        self.keys = [new_id() for _ in range(rows)] if keys is None else [str(key) for key in keys]
        if len(self.keys) != rows:
            raise Unwritable(f"there are {rows} inputs and {len(self.keys)} ids")
        answers, shares = (fitting(copied(given), rows) for given in (predictions, scores))
        self._held = (moment(at), held, answers, shares, version)
        super().__init__(rows, 150 * rows + sum(weight(part) for part in (held, answers, shares)))

    def unpacked(self) -> Iterator[Row]:
        at = self._held[0]
        for key, _, given, prediction, scores, version in self.singly():
            yield row(key, at, owned(given), owned(prediction), owned(scores), version)

    def singly(self) -> Iterator[Record]:
        """Key, time, input, prediction, scores and version of each record."""
        at, inputs, predictions, scores, version = self._held
        parts = (places(part, self.rows) for part in (inputs, predictions, scores))
        columns = zip(self.keys, *parts, strict=True)
        return ((key, at, given, answer, shares, version) for key, given, answer, shares in columns)


def row(key: str, at: int, inputs: object, prediction: object, scores: object, version: str | None) -> Row:
    """A record by column: inputs by their names, else ``features``, ``text``, ``image`` or ``input``."""
    about = {"id": key, "timestamp": at}
    answer = {"prediction": prediction, "scores": scores, "model_version": version}
    if type(inputs) is dict:
        return about | {f"input_{name}" if name in OWN else name: value for name, value in inputs.items()} | answer
    names = {Block: "features", list: "features", str: "text", bytes: "image"}
    return about | {names.get(type(inputs), "input"): inputs} | answer


def inputs_of(record: Row) -> dict[str, object]:
    """The inputs of a record by column, as :func:`row` named them."""
    return {name: value for name, value in record.items() if name not in OWN}


def moment(at: object) -> int:
    """A time as nanoseconds since 1970; one without a zone is UTC."""
    if at is None:
        return time.time_ns()
    if isinstance(at, int | float):
        return int(at * 1e9) if at < _NANOSECONDS else int(at)
    if isinstance(at, str):
        at = datetime.fromisoformat(at)
    if not isinstance(at, datetime):
        raise Unwritable(f"'at' is a datetime, ISO text or seconds since 1970; got {type(at).__name__}")
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6) * 1000


def single(inputs: object) -> object:
    """One input; a row of pandas as a mapping."""
    if type(inputs) in _NO_TABLES or not is_table(inputs):
        return inputs
    if inputs.ndim == 1:
        return inputs.to_dict()
    if len(inputs) != 1:
        raise Unwritable(f"a DataFrame of {len(inputs)} rows is not one input; record_batch() takes it")
    return cast("pd.DataFrame", inputs).to_dict("records")[0]


def copied(values: object) -> object:
    """A batch that nobody can change any more: a table, or columns that are lists as a mapping, stay what they are."""
    if values is None:
        return None
    if is_table(values):
        return values.copy()
    return owned(values)


def is_table(values: object) -> TypeGuard[pd.DataFrame | pd.Series]:
    """Whether these are rows of pandas; it is not imported for the question."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, (pandas.DataFrame, pandas.Series))


def count(inputs: object) -> int:
    """How many inputs a batch has."""
    if type(inputs) is Block:
        return inputs.shape[0]
    if type(inputs) is dict:
        lengths = {name: count(column) for name, column in inputs.items()}
        if len(set(lengths.values())) != 1:
            raise Unwritable(f"columns of a batch have one length; got {lengths}")
        return next(iter(lengths.values()))
    if is_table(inputs):
        return len(inputs)
    if type(inputs) is list:
        return len(inputs)
    raise Unwritable(f"a batch is a table, a matrix, a sequence or a mapping of columns; got {type(inputs).__name__}")


def fitting(answers: object, rows: int) -> object:
    """The answers to a batch; None where they are not one for each input."""
    try:
        return answers if answers is not None and count(answers) == rows else None
    except Unwritable:
        return None


def weight(batch: object) -> int:
    """About how many bytes a batch takes."""
    if not is_table(batch):
        return size(batch)
    used = batch.memory_usage(deep=False)
    table = cast("pd.DataFrame", batch if batch.ndim == 2 else cast("pd.Series[Any]", batch).to_frame())
    pointers = [place for place, kind in enumerate(table.dtypes) if kind == "object"]  # pandas counts these alone
    held = sum(size(value) for place in pointers for value in table.iloc[:, place])
    return int(used if isinstance(used, int) else used.sum()) * 2 + held


def places(batch: object, rows: int) -> Iterator[object]:
    """The part of a batch for each input."""
    if batch is None:
        yield from [None] * rows
    elif type(batch) is Block:
        yield from (batch.row(number) for number in range(rows))
    elif type(batch) is dict:
        columns = {name: list(places(column, rows)) for name, column in batch.items()}
        yield from (dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True))
    elif is_table(batch):
        if batch.ndim == 2:
            yield from cast("pd.DataFrame", batch).to_dict("records")
        else:
            yield from cast("pd.Series[Any]", batch).tolist()
    elif type(batch) is list:
        yield from batch


def answered(result: object) -> Mapping[str, Any]:
    """The named parts of an answer (``prediction``, ``scores`` and so on); else all of it is the prediction."""
    if isinstance(result, Mapping) and "prediction" in result:
        return {name: result[name] for name in ("prediction", "scores", "id", "model_version") if name in result}
    return {"prediction": result}

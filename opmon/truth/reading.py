"""From the rows of a source to truths: what is no truth is counted with its reason, and told."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opmon.abc import Source
from opmon.errors import SourceError
from opmon.jobs.counting import bounded
from opmon.jobs.ids import hashes_of, ids_of, may_be_ids, texts_of_ids
from opmon.jobs.moments import moments_of
from opmon.problems import Problem, traits
from opmon.replies import UNNAMED, Replies, is_blank, is_nan
from opmon.scoring.inputs.columns import decoded
from opmon.tables import as_text
from opmon.truth.truths import MOMENT, Truths
from opmon.types import Slice

_LONGEST = 40
NO_ID, NO_NUMBER = "no id, or one that can be none", "no finite number"
CONTRADICTED = "a later row says another truth of the same input and the same time"
COMMA = "a comma in a number, where a point is wanted (3.5)"
"""Whether it stands for a point or between thousands nobody can say of `1,234`."""
_WITH_COMMA = re.compile(r"\s*[+-]?[\d.\s]*\d,\d[\d,.\s]*")
_NO_ANSWER: Mapping[Problem, str] = {
    "classification": "none of the classes",
    "multilabel": "no list of the classes",
    "judged": "no judgement of an output",
    "regression": NO_NUMBER,
}


@dataclass(frozen=True)
class Vocabulary:
    """What a truth may say: what may be answered."""

    replies: Replies
    by_model: bool = False
    """Whether the model says which classes there are, so that another version may know others."""

    @property
    def is_open(self) -> bool:
        """Whether nobody has said yet which classes there are: any word may be one."""
        return self.replies.are_open

    @property
    def classes(self) -> Collection[str] | None:
        """The classes of which a truth says one, or several; None where they are not known, or there are none."""
        return self.replies.classes

    def words(self, values: pa.Array, named: pa.Array) -> pa.Array:
        """The truth of each row, ``named`` by this model, or the word that another version may call a class."""
        if not self.by_model or self.is_open:
            return named
        return pc.coalesce(named, Vocabulary(replace(self.replies, classes=None)).named(values)[0])

    def why_not(self, name: str) -> str:
        """Why rows with this class were not taken by a model that does not know it."""
        return f"{name[:_LONGEST]!r} is {_NO_ANSWER[self.replies.problem]}"

    def named(self, values: pa.Array) -> tuple[pa.Array, Counter[str]]:
        """The truth of each row, null where it says none; and why rows that say something cannot be taken."""
        return self._numbers(decoded(values)) if traits(self.replies.problem).of_numbers else self._answers(values)

    def _answers(self, values: pa.Array) -> tuple[pa.Array, Counter[str]]:
        coded = _encoded(values)
        names: list[str | None] = []
        wrong: dict[int, str] = {}
        for code, value in enumerate(coded.dictionary.to_pylist()):
            nothing = is_blank(value) if self.is_open else self.replies.says_nothing(value)
            names.append(None if nothing else self.replies.may_be(value))
            if names[-1] is None and not nothing:
                wrong[code] = self._why(value)
        codes = coded.indices.to_numpy(zero_copy_only=False)
        counted = Counter({reason: int((codes == code).sum()) for code, reason in wrong.items()})
        return pa.DictionaryArray.from_arrays(coded.indices, pa.array(names, pa.string())).cast(pa.string()), +counted

    def _why(self, value: object) -> str:
        """Why a value is no answer."""
        if self.is_open and is_nan(value):
            return UNNAMED
        return self.why_not(str(value))

    def _numbers(self, values: pa.Array) -> tuple[pa.Array, Counter[str]]:
        if pa.types.is_floating(values.type) or pa.types.is_integer(values.type):
            numbers = pc.cast(values, pa.float64(), safe=False)
        else:
            numbers = pa.array([_number(value) for value in values.to_pylist()], pa.float64())
        finite = pc.fill_null(pc.is_finite(numbers), False)
        wrong = values.filter(pc.fill_null(pc.is_inf(numbers), False))
        return pc.if_else(finite, numbers, None), Counter(map(_no_number, wrong.to_pylist()))


@dataclass(frozen=True, eq=False)
class Found:
    """The truths of some slices, and the rows that could not be taken."""

    truths: Truths
    words: Truths
    """What is kept: the same, or where the model names the classes each word, also those that it does not know."""
    ids: pa.Array
    """The inputs' own ids, in the order of the words."""
    refused: Counter[str] = field(default_factory=Counter)
    known_until: datetime | None = None


def read_truths(
    source: Source,
    slices: Sequence[Slice],
    columns: tuple[str, str, str | None],
    vocabulary: Vocabulary,
    now: datetime,
) -> Found:
    """The truths of the slices; ``columns`` are those of the id, of the truth and of the time when it was known."""
    pieces: list[pa.Table] = []
    refused: Counter[str] = Counter()
    for batch in source.read(slices, [name for name in columns if name is not None]):
        refused.update(batch.unreadable)
        values = column_of(batch.rows, columns[1])
        named, wrong = vocabulary.named(values)
        refused.update(wrong)
        words = vocabulary.words(values, named)
        said = pc.is_valid(words)
        rows, arrived = batch.rows.filter(said), slices[batch.slice_index].arrived_at
        piece = pa.table(
            {
                "id": _ids(column_of(rows, columns[0]), columns[0]),
                "label": words.filter(said),
                "at": known_at(rows, columns[2], arrived),
                "known": pc.is_valid(named).filter(said),
            }
        )
        refused.update(+Counter({NO_ID: piece.filter(piece["known"])["id"].null_count}))
        pieces.append(piece.filter(pc.is_valid(piece["id"])))
    return _found(pieces, Counter(bounded(refused)), now, vocabulary)


def known_at(rows: pa.RecordBatch | pa.Table, name: str | None, arrived: datetime) -> pa.Array:
    """When the truth of each row was known: as it says, else when it arrived."""
    otherwise = pa.scalar(arrived, MOMENT)
    if name is None:
        return pa.repeat(otherwise, rows.num_rows)
    return pc.fill_null(moments_of(column_of(rows, name), name), otherwise)


def _found(pieces: Sequence[pa.Table], refused: Counter[str], now: datetime, vocabulary: Vocabulary) -> Found:
    """What rows with an ``id`` and a word as its ``label`` say; ``known``: whether this model knows the word."""
    if not sum(piece.num_rows for piece in pieces):
        moments = pa.array([], MOMENT)
        nothing = Truths(np.empty(0, np.uint64), pa.nulls(0), moments, moments)
        return Found(nothing, nothing, pa.nulls(0), refused)
    said = pa.concat_tables(pieces)
    ids = column_of(said, "id")
    hashes = hashes_of(ids)
    said = said.append_column("hash", pa.array(hashes))
    own = said.filter(said["known"])
    truths = words = _newest(own, now, each_word=vocabulary.is_open)
    if vocabulary.by_model:
        words = _newest(said, now, each_word=True)
    order = np.argsort(hashes, kind="stable")
    first = order[np.searchsorted(hashes[order], words.hashes)]
    if own.num_rows:
        refused.update(+Counter({CONTRADICTED: _contradicted(truths, own)}))
    return Found(truths, words, ids.take(pa.array(first)), refused, pc.max(own["at"]).as_py())


def _newest(said: pa.Table, now: datetime, *, each_word: bool) -> Truths:
    hashes, label, at = (column_of(said, name) for name in ("hash", "label", "at"))
    read = pa.repeat(pa.scalar(now, MOMENT), said.num_rows)
    return Truths.newest(hashes.to_numpy(), label, at, read, each_word=each_word)


def _contradicted(truths: Truths, said: pa.Table) -> int:
    """How many rows say something else than the one that counts, without being older."""
    hashes, label, at = (column_of(said, name) for name in ("hash", "label", "at"))
    places = pa.array(truths.places(hashes.to_numpy()))
    differs = pc.and_(pc.equal(truths.at.take(places), at), pc.not_equal(truths.labels.take(places), label))
    return int(pc.sum(differs).as_py())


def _ids(values: pa.Array, name: str) -> pa.Array:
    """The ids as text, null where a row has none that can be one."""
    try:
        texts = texts_of_ids(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        ids_of(values.drop_null(), name)  # says why
        raise
    return pc.if_else(pc.fill_null(may_be_ids(texts), False), texts, None)


def column_of(rows: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    """A column of the truths; an error names those there are."""
    if name not in rows.schema.names:
        raise SourceError(
            f"the truths have no column {name!r}; they have: {', '.join(rows.schema.names)}. Correct it in 'truth'"
        )
    column = rows.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _encoded(values: pa.Array) -> pa.DictionaryArray:
    """Each different value once; lists and the like as JSON."""
    if pa.types.is_dictionary(values.type):
        return values
    return (as_text(values) if pa.types.is_nested(values.type) else decoded(values)).dictionary_encode()


def _number(value: object) -> float | None:
    """A number, infinity for what is none, None for nothing."""
    if is_blank(value) or is_nan(value):
        return None
    try:
        number = math.inf if "_" in str(value) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.inf
    return number if math.isfinite(number) else math.inf


def _no_number(value: object) -> str:
    """Why a value is no truth of a regression."""
    text = str(value)
    return COMMA if _WITH_COMMA.fullmatch(text) else f"{text[:_LONGEST]!r} is {NO_NUMBER}"

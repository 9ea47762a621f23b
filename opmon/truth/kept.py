"""The truths that were read, in files of the state folder, until no round can need them any more.

Each file has the truths of one or several pulls and says up to where their source was read: that it is there *is* that
the position has moved. It is written whole and then given its name, so that a kill at any point neither loses a truth
nor reads one twice. Small files are merged into larger ones: there are few of them, however many pulls there were.

Losing the folder loses nothing that the source still has: it is read again, and labels that were recorded stay as they
are. So every machine that works on a monitor has a folder of its own.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.errors import StateUnavailable
from opmon.jobs.counting import bounded
from opmon.private import private_folder
from opmon.truth.reading import Vocabulary
from opmon.truth.truths import MOMENT, Truths
from opmon.types import Document

_SAID = b"opmon.truths"
REASONS = 20
"""So many reasons why rows could not be taken are kept apart."""
_AS_LARGE = 2
"""A file is merged with the one before it where that has at most so many times its rows."""


@dataclass(frozen=True)
class Books:
    """What was read of a source so far."""

    positions: Mapping[str, str] = field(default_factory=dict)
    known_until: datetime | None = None
    taken: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    unjudged: bool = False
    """Whether some were kept before it was known which classes there are."""

    def stored(self) -> bytes:
        until = None if self.known_until is None else self.known_until.isoformat()
        return json.dumps(vars(self) | {"known_until": until}, separators=(",", ":")).encode()

    @classmethod
    def of(cls, stored: Document) -> Books:
        until = stored["known_until"]
        return cls(**{**stored, "known_until": None if until is None else datetime.fromisoformat(until)})


@dataclass(frozen=True)
class Kept:
    """The truths of one monitor, as read from one source."""

    folder: Path

    def books(self) -> Books:
        """What was read so far."""
        files = self._files()
        return Books.of(json.loads(_metadata(files[-1])[_SAID])) if files else Books()

    def add(self, new: Truths, books: Books, older: datetime | None = None, *, each_word: bool = False) -> None:
        """Keep what was read; with it the position moves. Truths that were read before ``older`` are forgotten.

        ``each_word``: each word that was said of an input is kept, for whoever knows which of them are classes.
        """
        private_folder(self.folder.parent)
        private_folder(self.folder)
        files, whole, merged = self._files(), _table(new), len(new)
        last = 1 + (_span(files[-1])[1] if files else 0)
        first = last
        while files and _rows(files[-1]) <= _AS_LARGE * merged:
            path = files.pop()
            first, whole = _span(path)[0], pa.concat_tables([_read(path), whole], promote_options="permissive")
            merged = whole.num_rows
        if first < last:
            whole = _merged(whole, older, each_word)
        self._write(self.folder / f"{first:08}-{last:08}.parquet", whole, books)
        for path in (*self._covered(), *self._old(older)):
            path.unlink(missing_ok=True)

    def judge(self, vocabulary: Vocabulary) -> Counter[str]:
        """Count what says none of the classes, which a model has told by now; gives how often it said what.

        Nothing is left out, for the next version may know the word. What was counted before the class was there counts
        no more.
        """
        files, books = self._files(), self.books()
        refused, left = Counter[str](), Counter(books.refused)
        for name in vocabulary.classes or ():
            left.pop(vocabulary.why_not(name), None)
        if books.unjudged:
            whole = pa.concat_tables([_read(path) for path in files], promote_options="permissive")
            refused = vocabulary.named(whole["label"].cast(pa.string()).combine_chunks())[1]
        taken = books.taken - sum(refused.values()) + sum(books.refused.values()) - sum(left.values())
        judged = replace(books, taken=taken, refused=dict(bounded(left + refused, REASONS)), unjudged=False)
        if judged != books:
            self._write(files[-1], _read(files[-1]), judged)
        return refused

    def find(self, hashes: NDArray[np.uint64], vocabulary: Vocabulary | None = None) -> Truths:
        """The truths of the inputs with these hashes, as far as they are there; ``vocabulary``: those that it takes."""
        order = np.sort(hashes)  # np.unique is slower by far
        order = order[np.append(order[1:] != order[:-1], True)] if len(order) else order
        tables: list[pa.Table] = []
        for path in self._files():
            known = _read(path, ["hash"])["hash"].to_numpy()
            hit = _rows_of(known, order)
            if len(hit):
                tables.append(_read(path).combine_chunks().take(pa.array(hit)))
        if vocabulary is not None and vocabulary.by_model:
            tables = [_taken(table, vocabulary) for table in tables]
        elif len(tables) == 1:
            return _ordered(tables[0])  # as it is most often
        return _truths(pa.concat_tables(tables, promote_options="permissive")) if tables else _truths(_EMPTY)

    def _write(self, path: Path, table: pa.Table, books: Books) -> None:
        partial = path.with_suffix(".partial")
        with partial.open("wb") as stream:
            pq.write_table(
                table.replace_schema_metadata({_SAID: books.stored()}), stream, compression="zstd",
                use_dictionary=["label"],
            )  # fmt: skip
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)

    def _files(self) -> list[Path]:
        """The files that count, oldest first: one that was merged into another does not."""
        covered = set(self._covered())
        return [path for path in self._there() if path not in covered]

    def _covered(self) -> list[Path]:
        """The files whose truths a merged one has; they are still there after a kill."""
        spans = {path: _span(path) for path in self._there()}
        return [
            path
            for path, (first, last) in spans.items()
            if any(low <= first and last <= high and (low, high) != (first, last) for low, high in spans.values())
        ]

    def _old(self, older: datetime | None) -> list[Path]:
        """The files, but for the last, of which all truths were read before a moment."""
        if older is None:
            return []
        return [path for path in self._files()[:-1] if (latest := _last_read(path)) is None or latest < older]

    def _there(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))


_EMPTY = pa.table(
    {
        "hash": pa.array([], pa.uint64()),
        "label": pa.nulls(0),
        "at": pa.array([], MOMENT),
        "read": pa.array([], MOMENT),
    }
)


def _table(truths: Truths) -> pa.Table:
    return pa.table({"hash": truths.hashes, "label": truths.labels, "at": truths.at, "read": truths.read})


def _truths(table: pa.Table, each_word: bool = False) -> Truths:
    """The truths of rows in the order in which they were read."""
    return Truths.newest(table["hash"].to_numpy(), *_columns(table), each_word=each_word)


def _ordered(table: pa.Table) -> Truths:
    """The truths of rows that have each input once, hashes in order."""
    return Truths(table["hash"].to_numpy(), *_columns(table))


def _columns(table: pa.Table) -> tuple[pa.Array, pa.Array, pa.Array]:
    label, at, read = (table[name].combine_chunks() for name in ("label", "at", "read"))
    return label, at, read


def _rows_of(known: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The rows of sorted hashes that are among the wanted ones, of which each is there once.

    >>> _rows_of(np.array([1, 3, 3, 5], np.uint64), np.array([3, 4, 5], np.uint64)).tolist()
    [1, 2, 3]
    """
    first, behind = (np.searchsorted(known, wanted, side=side) for side in ("left", "right"))
    counts = behind - first
    return np.repeat(behind - np.cumsum(counts), counts) + np.arange(counts.sum())


def _taken(table: pa.Table, vocabulary: Vocabulary) -> pa.Table:
    """The rows that say what the vocabulary takes, in its words."""
    named, _ = vocabulary.named(table["label"].cast(pa.string()).combine_chunks())
    return table.set_column(table.column_names.index("label"), "label", named).filter(pc.is_valid(named))


def _merged(table: pa.Table, older: datetime | None, each_word: bool) -> pa.Table:
    if older is not None:
        table = table.filter(pc.greater_equal(table["read"], pa.scalar(older, MOMENT)))
    return _table(_truths(table, each_word))


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    with _telling(path):
        return pq.read_table(path, columns=columns).replace_schema_metadata(None)


def _rows(path: Path) -> int:
    with _telling(path):
        return int(pq.read_metadata(path).num_rows)


def _metadata(path: Path) -> Mapping[bytes, bytes]:
    with _telling(path):
        return pq.read_schema(path).metadata or {}


def _last_read(path: Path) -> datetime | None:
    """When the last of its truths was read; None where it has none."""
    with _telling(path):
        found = pq.read_table(path, columns=["read"])["read"]
    latest: datetime | None = pc.max(found).as_py()
    return latest


def _span(path: Path) -> tuple[int, int]:
    """The numbers of the first and the last pull that a file has."""
    first, _, last = path.stem.partition("-")
    return int(first), int(last)


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError) as exc:
        raise StateUnavailable(
            f"{path}, which holds truths that were read, cannot be read itself ({exc}). Remove the folder "
            f"{path.parent}: what is still in the source is then read again"
        ) from exc

"""Thousands of small text files cost their opening, not a parser's start each: those of one kind are read as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opmon.errors import SourceError
from opmon.sources._damage import Damaged, Lost
from opmon.sources._folder import Entry
from opmon.sources._format import Format, Piece
from opmon.sources._position import Position
from opmon.sources._stored import StoredFile
from opmon.types import Batch, Slice

if TYPE_CHECKING:
    import pyarrow as pa

    from opmon.sources._schema import Columns

_SMALL_BYTES, _RUN_BYTES = 1 << 16, 1 << 20


@dataclass(frozen=True, slots=True)
class Opened:
    """A slice, number ``index`` of those that are read, and where its rows are."""

    index: int
    slice: Slice
    form: Format
    piece: Piece


def held(entry: Entry) -> Entry:
    """The file with its content, where it is small, and of the size that it had when it was found, if it grew."""
    if isinstance(entry.path, StoredFile):
        begun = entry.path.begun()
        return replace(entry, content=begun) if isinstance(begun, bytes) else replace(entry, path=begun)
    if entry.size > _SMALL_BYTES:
        return entry
    try:
        with entry.open() as stream:
            content = stream.read(_SMALL_BYTES + 1)
    except OSError as exc:
        raise SourceError(f"{entry.part} cannot be opened: {exc.strerror or exc}") from exc
    if len(content) > _SMALL_BYTES:
        return entry
    return Entry(entry.part, entry.path, min(len(content), entry.size), entry.modified_ns, content)


def runs(opened: Iterable[Opened]) -> Iterator[list[Opened]]:
    """Small files of one kind that follow each other together, the others alone."""
    run: list[Opened] = []
    size, before = 0, None
    for one in opened:
        joining = one.form.joining
        kind = None if joining is None else joining.kind(one.piece.entry)
        here = None if kind is None else (one.form, kind)
        size += one.piece.entry.size
        if run and (here is None or here != before or size > _RUN_BYTES):
            yield run
            run, size = [], one.piece.entry.size
        run.append(one)
        before = here
    if run:
        yield run


def add_columns(
    columns: Columns, opened: Iterable[Opened], stops: bool, refuse: Callable[[str, SourceError], None]
) -> None:
    """Add the columns of all files but those that are refused; ``stops``: for a row that cannot be read, too."""
    for run in runs(opened):
        if len(run) > 1 and _add_together(columns, run):
            continue
        for one in run:
            try:
                columns.add_folders(one.slice.part)
                head = one.form.head(one.piece)
                if head.lost is not None and stops:
                    raise Damaged(head.lost.why())
                columns.add(one.slice.part, one.form.strong, head.schema)
            except SourceError as exc:
                refuse(one.slice.part, exc)


def _add_together(columns: Columns, run: Sequence[Opened]) -> bool:
    """Add the columns of all files of a run at once; false where they must be looked at one by one."""
    form = run[0].form
    whole = [Piece(one.piece.entry, Position(), one.piece.stop) for one in run]
    try:
        for one in run:
            columns.add_folders(one.slice.part)
        head = form.head(_joined(run, whole), mixed=False)
        if head.lost is not None:
            return False
        columns.add(run[0].slice.part, form.strong, head.schema)
    except Damaged:
        return False
    return True


def _joined(run: Sequence[Opened], pieces: Sequence[Piece]) -> Piece:
    joining = run[0].form.joining
    assert joining is not None, "a run of several files is of files that can be joined"
    return joining.joined(pieces)


def read_together(run: Sequence[Opened], schema: pa.Schema) -> list[Batch] | None:
    """The rows of a run, slice by slice; None where they must be read one by one."""
    import pyarrow as pa

    form, batches = run[0].form, []
    for found in form.batches(_joined(run, [one.piece for one in run]), schema):
        if isinstance(found, Lost):
            return None
        batches.append(found)
    table = pa.Table.from_batches(batches, schema)
    if table.num_rows != sum(one.slice.rows for one in run):
        return None
    made, at = [], 0
    for one in run:
        first = 0
        for rows in table.slice(at, one.slice.rows).to_batches():
            made.append(Batch(one.index, first, rows))
            first += rows.num_rows
        at += one.slice.rows
    return made

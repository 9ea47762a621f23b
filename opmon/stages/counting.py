"""How many rows of some slices are inputs, before a round takes them: read by the columns that tell it alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from opmon.abc import Source
from opmon.errors import SourceError
from opmon.jobs.versions import said_of
from opmon.types import Slice
from opmon.where import Where


@dataclass(frozen=True)
class Counted:
    """The rows of some slices."""

    inputs: int
    """Those that are inputs, or may be: rows that cannot be read are among them."""
    filtered: int = 0
    """Those that are none: the configuration leaves them out."""
    unreadable: int = 0
    said: Counter[str] = field(default_factory=Counter)
    """What the readable inputs say of their model version, where a column tells it."""

    @property
    def rows(self) -> int:
        """All rows."""
        return self.inputs + self.filtered


def count_inputs(
    source: Source, slices: Sequence[Slice], where: Where | None, version_column: str | None = None
) -> Counted:
    """Count the inputs among the rows of the slices; nothing is read where all of them are."""
    rows = sum(piece.rows for piece in slices)
    if version_column is None and where is None:
        return Counted(rows)
    columns = dict.fromkeys((*(where.columns if where else ()), *((version_column,) if version_column else ())))
    said: Counter[str] = Counter()
    fitting = unreadable = 0
    for batch in source.read(slices, list(columns)):
        unreadable += sum(batch.unreadable.values())
        kept = batch.rows if where is None else batch.rows.filter(pa.array(where.mask(batch.rows)))
        fitting += kept.num_rows
        if version_column is not None:
            said.update(said_of(_column(kept, version_column), version_column))
    return Counted(fitting + unreadable, rows - fitting - unreadable, unreadable, said)


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    index = rows.schema.get_field_index(name)
    if index < 0:
        raise SourceError(f"the inputs have no column {name!r}; they have: {', '.join(rows.schema.names)}")
    return rows.column(index)

"""How many rows of some slices are inputs, before a round takes them: read by the columns that tell it alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import Source
from opmon.errors import SourceError
from opmon.jobs.thinning import Thinning, accepted, probabilities
from opmon.jobs.versions import said_of
from opmon.types import Floats, Slice
from opmon.where import Where


@dataclass(frozen=True)
class Counted:
    """The rows of some slices."""

    inputs: int
    """Those that are inputs, or may be: rows that cannot be read are among them."""
    filtered: int = 0
    """Those that are none: the configuration leaves them out."""
    thinned: int = 0
    """Those that are left out because they were logged with a greater probability than others."""
    unreadable: int = 0
    said: Counter[str] = field(default_factory=Counter)
    """What the readable inputs say of their model version, where a column tells it."""
    thinning: Thinning | None = None

    @property
    def rows(self) -> int:
        """All rows."""
        return self.inputs + self.filtered + self.thinned


@dataclass(frozen=True, eq=False)
class _Piece:
    """What is kept of a batch until it is known how rows are made even."""

    slice: Slice
    first: int
    fits: NDArray[np.bool_]
    probability: Floats | None
    said: pa.Array | None


def count_inputs(
    source: Source,
    slices: Sequence[Slice],
    where: Where | None,
    version_column: str | None = None,
    inclusion: str | None = None,
) -> Counted:
    """Count the inputs among the rows of the slices; nothing is read where all of them are."""
    rows = sum(piece.rows for piece in slices)
    named = [*(where.columns if where else ()), *(name for name in (version_column, inclusion) if name)]
    if not named:
        return Counted(rows)
    pieces: list[_Piece] = []
    unreadable = 0
    for batch in source.read(slices, list(dict.fromkeys(named))):
        unreadable += sum(batch.unreadable.values())
        fits = np.ones(batch.rows.num_rows, bool) if where is None else where.mask(batch.rows)
        probability = None if inclusion is None else probabilities(batch.rows, inclusion, fits)
        said = None if version_column is None else _column(batch.rows, version_column)
        pieces.append(_Piece(slices[batch.slice_index], batch.first_row, fits, probability, said))
    return _counted(rows, pieces, unreadable, version_column or "", inclusion)


def _counted(
    rows: int, pieces: Sequence[_Piece], unreadable: int, version_column: str, inclusion: str | None
) -> Counted:
    least = min((_least(piece) for piece in pieces), default=1.0)
    thinning = None if inclusion is None or least >= 1 else Thinning(inclusion, least)
    said: Counter[str] = Counter()
    fitting = taken = 0
    for piece in pieces:
        kept = piece.fits
        fitting += int(kept.sum())
        if thinning is not None and piece.probability is not None:
            kept = kept & accepted(piece.probability, least, piece.slice, piece.first)
        taken += int(kept.sum())
        if piece.said is not None:
            said.update(said_of(piece.said.filter(pa.array(kept)), version_column))
    return Counted(taken + unreadable, rows - fitting - unreadable, fitting - taken, unreadable, said, thinning)


def _least(piece: _Piece) -> float:
    return 1.0 if piece.probability is None else float(np.min(piece.probability[piece.fits], initial=1.0))


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    index = rows.schema.get_field_index(name)
    if index < 0:
        raise SourceError(f"the inputs have no column {name!r}; they have: {', '.join(rows.schema.names)}")
    return rows.column(index)

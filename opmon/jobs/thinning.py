"""A log that is itself a sample of the traffic, with other probabilities for other rows, made even again.

Production may log only a share of its inputs, and what it is unsure of more often than the rest: each row then says
with which probability it was logged. Of such a row only the share ``least / probability`` is taken on, by a fixed lot,
so that every input of the traffic has had the same chance: what is drawn, estimated and judged afterwards speaks of all
of it, and need not know. Rows without a probability were logged for sure.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.types import Floats, Slice


@dataclass(frozen=True)
class Thinning:
    """How the rows of a round are made even."""

    column: str
    least: float
    """The smallest probability with which an input of the round was logged."""

    @classmethod
    def of(cls, stored: Mapping[str, str | float] | None) -> Self | None:
        """As :meth:`stored` wrote it."""
        return None if stored is None else cls(str(stored["column"]), float(stored["least"]))

    def stored(self) -> dict[str, str | float]:
        """As JSON can hold it."""
        return {"column": self.column, "least": self.least}

    def mask(self, rows: pa.RecordBatch, piece: Slice, first: int, fits: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the rows that fit, the first row being row ``first`` of the slice, are taken on."""
        return fits & accepted(probabilities(rows, self.column, fits), self.least, piece, first)


def probabilities(rows: pa.RecordBatch, column: str, fits: NDArray[np.bool_]) -> Floats:
    """With which probability each row was logged; an error for what is none, in a row that fits ``inputs.where``."""
    index = rows.schema.get_field_index(column)
    if index < 0:
        return np.ones(rows.num_rows)
    try:
        said = np.asarray(pc.fill_null(pc.cast(rows.column(index), pa.float64()), 1.0))
    except pa.ArrowException as exc:
        raise SourceError(f"column {column!r} is {rows.column(index).type}, and no probability") from exc
    found = np.where(fits, said, 1.0)
    wrong = found[~((found > 0) & (found <= 1))]
    if len(wrong):
        raise SourceError(
            f"column {column!r} says with which probability a row was logged: above 0, at most 1; got {wrong[0]:g}. "
            f"Mend the log, or leave such rows out by inputs.where"
        )
    return found


def accepted(found: Floats, least: float, piece: Slice, first: int) -> NDArray[np.bool_]:
    """The lot of consecutive rows: the same one whenever it is cast."""
    if not (found > least).any():
        return np.ones(len(found), bool)
    seed = np.random.Philox(key=[zlib.crc32(piece.part.encode()), zlib.crc32(piece.start.encode())])
    lots = np.random.Generator(seed.advance(first // _DOUBLES)).random(first % _DOUBLES + len(found))
    return np.asarray(lots[first % _DOUBLES :] * found < least * (1 + 1e-12))


_DOUBLES = 4
"""One step of Philox gives four numbers."""

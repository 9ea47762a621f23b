"""Auxiliary variables that come from columns of the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import InputError, SourceError
from opmon.scoring.inputs.columns import decoded
from opmon.scoring.scored import Scored

if TYPE_CHECKING:
    from opmon.abc import Head


def with_logged(scored: Scored, heads: Mapping[str, Head], rows: pa.RecordBatch, first: int) -> Scored:
    """The scored batch with the variables that its own columns give; ``first`` is the number of its first row."""
    if not heads or not len(scored.rows):
        return scored
    variables = dict(scored.variables)
    for name, head in heads.items():
        values = {column: _numbers(rows, column) for column in head.columns}
        try:
            variables[name] = head.of_columns(values).astype(np.float32, copy=False)[scored.rows - first]
        except InputError as exc:
            raise SourceError(f"the variable {name!r}: {exc}") from exc
    return dataclasses.replace(scored, variables=variables)


def _numbers(rows: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    index = rows.schema.get_field_index(name)
    if index < 0:
        raise SourceError(
            f"the inputs have no column {name!r}, which a variable is; they have: {', '.join(rows.schema.names)}"
        )
    column = decoded(rows.column(index))
    try:
        return np.asarray(pc.fill_null(pc.cast(column, pa.float64(), safe=False), np.nan))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
        raise SourceError(f"column {name!r} is {column.type}, and a variable is a number ({exc})") from exc

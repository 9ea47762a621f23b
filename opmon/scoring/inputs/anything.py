"""The beginning of whatever a column holds, as text: a frame keeps no more of outputs that people judge."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opmon.types import Array

LONGEST = 200


def beginnings(column: pa.Array) -> Array:
    """Text as it is, anything else as JSON, cut where it is long; empty where there is nothing.

    >>> beginnings(pa.array([["a", "b"], None])).tolist(), beginnings(pa.array(["x" * 300]))[0][-3:]
    (['["a", "b"]', ''], 'xx…')
    """
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        cut = pc.utf8_slice_codeunits(column, 0, LONGEST + 1)
        texts = ["" if text is None else text for text in cut.to_pylist()]
    else:
        texts = ["" if value is None else _text(value) for value in column.to_pylist()]
    return np.array([_shortened(text) for text in texts], dtype=object)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    return f"({len(value):,} bytes)" if isinstance(value, bytes) else str(value)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

"""A log of requests to a model server, told by what its columns hold."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from opmon.sources.nested import as_json

_PARSED = 50
_FORMS = frozenset({"dataframe_split", "dataframe_records", "instances", "inputs"})
"""One of these keys stands in a request to a model server; the fields of one input have names of their own."""


def layout_of(rows: pa.Table) -> str | None:
    """The layout of the log, as the source ``requests`` calls it; None if it is not a log of requests."""
    if "captureData" in rows.column_names:
        return "sagemaker"
    if "request" not in rows.column_names:
        return None
    cells = [cell for cell in rows["request"].slice(0, _PARSED).to_pylist() if cell]
    requests = [_read(cell) for cell in cells]
    if not requests or not all(map(_is_request, requests)):
        return None
    return "v2" if any(map(_has_tensors, requests)) else "mlflow"


def _read(cell: object) -> object:
    if isinstance(cell, bytes):
        return as_json(cell.decode(errors="replace"))
    return as_json(cell) if isinstance(cell, str) else None


def _is_request(value: object) -> bool:
    if isinstance(value, Mapping):
        return bool(_FORMS & set(value)) or {"columns", "data"} <= set(value)
    return isinstance(value, list)


def _has_tensors(value: object) -> bool:
    """Whether its inputs are tensors with a name and data, as V2 has them."""
    inputs = value.get("inputs") if isinstance(value, Mapping) else None
    return isinstance(inputs, list) and any(isinstance(each, Mapping) and "data" in each for each in inputs)

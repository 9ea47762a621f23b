"""Datasets as MLflow shows them beside a run: where they are, their columns, how many rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from opmon.abc import Dataset

if TYPE_CHECKING:
    import pyarrow as pa
    from mlflow.entities import DatasetInput

MOST_COLUMNS, MOST_CHARACTERS = 500, 65_535
"""So many columns are named, and fewer where MLflow would not keep all that they take."""


def dataset_inputs(datasets: Sequence[Dataset], run_id: str, place: str, site: str | None) -> list[DatasetInput]:
    """The datasets of a run whose files are at ``place``; ``site`` is where MLflow's pages are."""
    from mlflow.entities import Dataset as Entity
    from mlflow.entities import DatasetInput, InputTag

    found = []
    for each in datasets:
        kind, source = _source(each.kept_as, run_id, place, site)
        about = (json.dumps(some) for some in (source, *_about(each.path)))
        entity = Entity(each.name, _digest(each.path), kind, *about)
        tags = {"mlflow.data.context": each.role, **each.tags}
        found.append(DatasetInput(entity, [InputTag(key, value) for key, value in tags.items()]))
    return found


def _source(kept_as: str, run_id: str, place: str, site: str | None) -> tuple[str, dict[str, str]]:
    """The kind of the source and its address, as ``mlflow.data.get_source`` opens it."""
    scheme = urlsplit(place).scheme
    if scheme in ("mlflow-artifacts", "http", "https") and site is not None:
        return "http", {"url": f"{site}/get-artifact?path={quote(kept_as)}&run_uuid={run_id}"}
    return ("local" if scheme in ("", "file") else scheme), {"uri": f"{place.rstrip('/')}/{kept_as}"}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:8]


def _about(path: Path) -> tuple[dict[str, object], dict[str, int]]:
    """The columns of a Parquet file as MLflow writes them, and how large it is."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    columns = [_column(column) for column in list(file.schema_arrow)[:MOST_COLUMNS]]
    while len(json.dumps({"mlflow_colspec": columns})) > MOST_CHARACTERS:
        columns = columns[: len(columns) // 2]
    return {"mlflow_colspec": columns}, {"num_rows": file.metadata.num_rows, "num_columns": len(file.schema_arrow)}


def _column(column: pa.Field) -> dict[str, object]:
    return {**_type(column.type), "name": column.name, "required": not column.nullable}


def _type(kind: pa.DataType) -> dict[str, object]:
    """The type of a column in MLflow's words."""
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {"type": "array", "items": _type(kind.value_type)}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _type(kind.item_type)}
    if pa.types.is_struct(kind):
        inner = {field.name: {**_type(field.type), "required": not field.nullable} for field in kind}
        return {"type": "object", "properties": inner}
    return {"type": _single(kind)}


def _single(kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "long" if kind.bit_width > 32 else "integer"
    if pa.types.is_floating(kind):
        return "double" if kind.bit_width > 32 else "float"
    if pa.types.is_temporal(kind):
        return "datetime"
    return "binary" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "string"

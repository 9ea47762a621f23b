"""The rows of one file of a Delta table, with the columns and types that the table has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from opmon.errors import SourceError
from opmon.sources._schema import conform
from opmon.sources.delta.log import File, Table

_ROWS = 65_536


def count(table: Table, file: File) -> int:
    """How many rows a file has: as the log says, or else its footer."""
    if file.rows is not None:
        return file.rows
    with _opened(table, file) as opened:
        return int(opened.metadata.num_rows)


def batches(table: Table, file: File, start: int, stop: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows ``start`` to ``stop`` of a file; a column that it does not have is null."""
    with _opened(table, file) as opened:
        names = [name for name in opened.schema_arrow.names if name in schema.names and name not in table.parted_by]
        at, groups = 0, []
        first = None
        for number in range(opened.metadata.num_row_groups):
            end = at + opened.metadata.row_group(number).num_rows
            if at < stop and end > start:
                groups.append(number)
                first = at if first is None else first
            at = end
        at = first or 0
        for batch in opened.iter_batches(_ROWS, groups, names) if groups else ():
            low, high = max(start - at, 0), min(stop - at, batch.num_rows)
            at += batch.num_rows
            if low < high:
                yield _fitted(table, file, batch.slice(low, high - low), schema)


def _opened(table: Table, file: File) -> pq.ParquetFile:
    if file.has_deleted_rows:
        raise SourceError(
            f"{table.shown}: of {file.path} single rows are deleted (deletion vectors), which opmon does not read. Run "
            f"REORG TABLE … APPLY (PURGE) and give the monitor a new name."
        )
    try:
        return pq.ParquetFile(table.files.open_input_file(file.path), pre_buffer=True)
    except FileNotFoundError as exc:
        raise gone(table, [file.path]) from exc
    except (pa.ArrowException, OSError) as exc:
        raise SourceError(f"{table.shown}: {file.path} cannot be read: {exc}") from exc


def gone(table: Table, paths: Sequence[str]) -> SourceError:
    """The error for files that were needed and are gone."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return SourceError(
        f"{table.shown}: {paths[0]}{more} is gone: VACUUM removed it before its rows were read, or while a round "
        f"needed them. Keep files for longer than rounds take (delta.deletedFileRetentionDuration). Restore the file, "
        f"or say vacuumed: skip to go on without it: its rows are counted as never read. A monitor with a new name "
        f"begins with the table as it is."
    )


def _fitted(table: Table, file: File, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        for name in schema.names:
            if name in table.parted_by:
                batch = batch.append_column(name, _parted(file, name, schema.field(name).type, batch.num_rows))
        return conform(batch, schema)
    except (ValueError, pa.ArrowException) as exc:
        raise SourceError(f"{table.shown}: {file.path} does not fit the table: {exc}") from exc


def _parted(file: File, name: str, kind: pa.DataType, rows: int) -> pa.Array:
    value = file.partition.get(name)
    if value is None or (value == "" and not pa.types.is_string(kind)):
        return pa.nulls(rows, kind)
    if isinstance(value, str) and pa.types.is_timestamp(kind) and kind.tz is not None and value[-1:] != "Z":
        value = f"{value}Z"
    return pa.repeat(pa.scalar(value).cast(kind), rows)

"""The source ``feather``: a folder of Arrow IPC files, as serving code in other languages likes to write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from opmon.abc import Source
from opmon.errors import InputError, SourceError
from opmon.types import Batch, Slice


@dataclass(frozen=True)
class Feather(Source):
    """All ``*.arrow`` and ``*.feather`` files of a folder, oldest name first; a position is a number of rows.

    Files are written elsewhere and renamed into the folder when they are whole; they do not change afterwards.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    """The folder."""

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        slices: list[Slice] = []
        left = limit
        for file in self._files():
            start, rows = int(positions.get(file.name, "0")), self._rows(file)
            count = rows - start if left is None else min(rows - start, left)
            if count > 0:
                arrived = datetime.fromtimestamp(file.stat().st_mtime, UTC)
                slices.append(Slice(file.name, str(start), str(start + count), count, arrived))
                left = None if left is None else left - count
        return slices

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        for index, piece in enumerate(slices):
            first = 0
            for rows in self._table(piece, columns).to_batches():
                yield Batch(index, first, rows)
                first += rows.num_rows

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        for index in rows:
            wrong = [row for row in rows[index] if not 0 <= row < slices[index].rows]
            if wrong:
                raise InputError(
                    f"{slices[index].part} has rows 0..{slices[index].rows - 1} here; asked for {wrong[0]}"
                )
        return pa.concat_tables(self._table(slices[index], None).take(list(rows[index])) for index in sorted(rows))

    def _files(self) -> list[Path]:
        folder = Path(self.path)
        if not folder.is_dir():
            raise SourceError(f"there is no folder {folder}; make it, or correct 'path'")
        return sorted(file for file in folder.iterdir() if file.suffix in (".arrow", ".feather"))

    def _rows(self, file: Path) -> int:
        with self._opened(file) as reader:
            return sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))

    def _table(self, piece: Slice, columns: Sequence[str] | None) -> pa.Table:
        start, stop = int(piece.start), int(piece.stop)
        with self._opened(Path(self.path) / piece.part) as reader:
            table = reader.read_all()
        if table.num_rows < stop:
            raise SourceError(
                f"{piece.part} has {table.num_rows} rows and had {stop}; put back the file that was there"
            )
        table = table.slice(start, stop - start)
        return table if columns is None else table.select(list(columns))

    def _opened(self, file: Path) -> pa.ipc.RecordBatchFileReader:
        try:
            return pa.ipc.open_file(pa.memory_map(str(file)))
        except (pa.ArrowInvalid, OSError) as exc:
            raise SourceError(f"{file.name} is no whole Arrow file ({exc}); write it elsewhere and rename it") from exc

"""What was drawn, captured once, when it was drawn: a source whose rows vanish afterwards is no problem.

The rows are kept as the log had them, one Parquet file for each wave, in the round's MLflow run; a picture that the log
names by its path is kept itself. Whatever looks at a drawn input later (another model version, the report, the
robustness) looks here.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.adjudication import Asked
from opmon.config import MonitorSettings
from opmon.errors import NotFoundError
from opmon.scoring.inputs.columns import decoded
from opmon.scoring.inputs.encoded import encoded_all, unreadable
from opmon.stages.toolbox import Toolbox
from opmon.store import attachments
from opmon.store.rounds import Round
from opmon.tables import joined
from opmon.types import Json

log = logging.getLogger(__name__)

POSITION = "opmon.position"
"""The column with the place of an input in the round's frame."""


def capture(work: Toolbox, round_: Round, positions: NDArray[np.int64], rows: pa.Table) -> pa.Table:
    """Keep the rows of the inputs that the next wave has drawn; done again, it gives the same file.

    Gives the rows as they are kept: with the pictures themselves, and nothing where one cannot be had.
    """
    kept = _with_pictures(work.settings, round_, rows)
    path = work.round_folder(round_) / name_of(round_.waves)
    partial = path.with_suffix(".partial")
    pq.write_table(kept.append_column(POSITION, pa.array(positions)), partial, compression="zstd")
    partial.replace(path)
    if round_.run_id is not None:
        work.registry.log_artifact(round_.run_id, path)
    return kept


def captured(work: Toolbox, round_: Round, positions: NDArray[np.int64]) -> pa.Table | None:
    """The rows of drawn inputs, by their positions in ascending order; None where they were not captured: by a release
    that did not yet, or because no wave drew them."""
    try:
        waves = [pq.read_table(_file(work, round_, wave)) for wave in range(round_.waves)]
    except NotFoundError:
        return None
    if not waves:
        return None
    table = joined(waves)
    order = np.argsort(table[POSITION].to_numpy(), kind="stable")
    known = table[POSITION].to_numpy()[order]
    places = np.minimum(np.searchsorted(known, positions), len(known) - 1)
    if (known[places] != positions).any():
        return None
    return table.take(pa.array(order[places])).drop_columns(POSITION)


def seen(work: Toolbox, tasks: Sequence[Asked]) -> list[Mapping[str, Json]]:
    """What annotators saw of the inputs, with the bytes that are kept beside it."""
    with work.store.read() as connection:
        files = attachments.of_tasks(connection, [task.task_id for task in tasks if task.task_id is not None])
    return [attachments.restored(task.payload, task.task_id or 0, files) for task in tasks]


def payloads(work: Toolbox, round_: Round, tasks: Sequence[Asked]) -> list[Mapping[str, Json]]:
    """What annotators saw of the inputs; with a picture itself where they saw its path."""
    image = work.settings.inputs.image
    own = seen(work, tasks)
    if image is None or not any(_is_path(payload.get(image.column)) for payload in own):
        return own
    positions = np.unique([task.position for task in tasks])
    rows = captured(work, round_, positions)
    if rows is None or not pa.types.is_binary(rows[image.column].type):
        return own
    pictures = dict(zip(positions.tolist(), rows[image.column].to_pylist(), strict=True))
    return [
        {**payload, image.column: _as_json(pictures[task.position])}
        if pictures[task.position] and not attachments.is_erased(payload)
        else payload
        for task, payload in zip(tasks, own, strict=True)
    ]


def _file(work: Toolbox, round_: Round, wave: int) -> Path:
    path = work.round_folder(round_) / name_of(wave)
    if path.exists():
        return path
    if round_.run_id is None:
        raise NotFoundError(f"round {round_.number} of {round_.monitor} has no run")
    return Path(work.registry.download(round_.run_id, name_of(wave), path.parent))


def name_of(wave: int) -> str:
    """The file of a wave."""
    return f"drawn-{wave:03}.parquet"


def _with_pictures(settings: MonitorSettings, round_: Round, rows: pa.Table) -> pa.Table:
    """The rows with the pictures themselves where a column names their files, or holds them as text; those that there
    are not are told of here alone."""
    folder = None if settings.inputs.image is None else settings.inputs.image.folder
    for column in picture_columns(settings, rows):
        cells = decoded(rows[column].combine_chunks()).to_pylist()
        if not named_pictures(cells):
            continue
        read = encoded_all(cells, column, folder)
        missing = unreadable(read)
        if missing is not None:
            log.warning("the drawn inputs of round %s are shown as far as possible: %s", round_.number, missing)
        found = [cell if isinstance(cell, bytes) else None for cell in read]
        if any(found):  # else the names are all there is
            rows = rows.set_column(rows.column_names.index(column), column, pa.array(found, pa.binary()))
    return rows


def picture_columns(settings: MonitorSettings, rows: pa.Table) -> list[str]:
    """The columns that hold pictures, as configured."""
    image = settings.inputs.image
    named = dict.fromkeys((settings.columns.image, None if image is None else image.column))
    return [column for column in named if column is not None and column in rows.column_names]


def named_pictures(cells: Sequence[object]) -> bool:
    """Whether cells name the files of pictures, or hold them as text."""
    return any(isinstance(cell, str | Mapping) for cell in cells)


def _is_path(cell: object) -> bool:
    """Whether a cell names a file: as text, or as the datasets library does."""
    return isinstance(cell, str) or (isinstance(cell, Mapping) and bool(cell.get("path")) and not cell.get("bytes"))


def _as_json(picture: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(picture).decode()}

"""The parts that a job writes: Parquet files of bounded size, each with a summary of itself in its footer.

A part has one row for each input that can be judged: ``id``, ``hash`` where the log has ids, ``slice`` and ``row`` (the
way back to the log), ``prediction`` (what is judged), one ``variable.<name>`` for each auxiliary variable and one
``slice.<name>`` for each column that divides the inputs, one ``chance.<class>`` for each class that the sampler aims
by; where production logged numbers, ``own`` (the model's) and ``logged``; and the float32 values of the layer where
they are wanted. A part is there whole or not at all, so that a job that was killed goes on behind its last one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.jobs.moments import NO_SPAN, Span
from opmon.jobs.served import Skew
from opmon.scoring.outputs.variables import FLOOR
from opmon.tables import joined

VARIABLE, SLICE, CHANCE, ACTIVATIONS = "variable.", "slice.", "chance.", "activations"
HASH, OWN, LOGGED = "hash", "own", "logged"
_SUMMARY = b"opmon.part"
_ROW_GROUP = 1 << 16

Gap = tuple[int, Mapping[str, int]]
"""A number of consecutive inputs, and how many of them lack each column."""


@dataclass(frozen=True)
class Part:
    """The summary of one part."""

    path: Path
    start: int
    stop: int
    """The rows of its job that it covers, counted over those that are scored."""
    rows: int
    """The number of them that can be judged: those in the file."""
    last: bool
    """Whether the job ends with it."""
    losses: Mapping[str, int] = field(default_factory=dict)
    """Why the others cannot be judged, and how many for each reason."""
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Why rows before its last one could not even be read."""
    gaps: tuple[Gap, ...] = ()
    skew: Skew | None = None
    """None where production logged nothing, or numbers: these are looked at together."""
    span: Span = NO_SPAN
    classes: tuple[str, ...] | None = None

    @property
    def sample(self) -> Path:
        """The file of its share of the sample for the drift report, if it has one."""
        return self.path.with_suffix(".sample.arrow")

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some of its columns."""
        return pq.read_table(self.path, columns=list(names), memory_map=True)

    @property
    def names(self) -> list[str]:
        """The columns of its file."""
        return [str(name) for name in pq.read_schema(self.path).names]

    def write(self, table: pa.Table, sample: Sequence[pa.RecordBatch]) -> Part:
        """Write the part, whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if sample:
            _write_sample(self.sample, sample)
        partial = self.path.with_suffix(f".{os.getpid()}.partial")
        kept = table.replace_schema_metadata({_SUMMARY: json.dumps(self._stored(), default=str)})
        plain = [name for name in table.schema.names if name == "prediction" or name.startswith(SLICE)]
        pq.write_table(kept, partial, row_group_size=_ROW_GROUP, compression="lz4", use_dictionary=plain)
        partial.replace(self.path)
        return self

    def _stored(self) -> dict[str, object]:
        return {key: value for key, value in asdict(self).items() if key != "path"}

    @classmethod
    def read(cls, path: Path) -> Part:
        """The summary of a part on disk."""
        stored = json.loads(pq.read_schema(path).metadata[_SUMMARY])
        skew, span = stored.pop("skew"), stored.pop("span")
        gaps = tuple((rows, missing) for rows, missing in stored.pop("gaps"))
        return cls(
            path,
            **{**stored, "classes": _tuple(stored["classes"])},
            gaps=gaps,
            skew=None if skew is None else Skew(**{**skew, "classes": _tuple(skew["classes"])}),
            span=Span(_moment(span["first"]), _moment(span["last"]), span["odd"], span["late"]),
        )


def lacking(name: str, rows: int) -> NDArray[np.float32]:
    """What inputs have in a column that only other inputs of their round have.

    A model that answers one probability gives no variables with those that are all 0 or 1, which look like classes:
    they are the least suspicious. A chance is not known.
    """
    return np.full(rows, FLOOR if name.startswith(VARIABLE) else np.nan, np.float32)


def path_of(folder: Path, number: int) -> Path:
    """The file of part ``number`` of a job."""
    return folder / f"part-{number:05}.parquet"


def finished(folder: Path) -> list[Part]:
    """The parts that a job has written, in order."""
    return [*_finished(folder)]


def _finished(folder: Path) -> Iterator[Part]:
    number = 0
    while (path := path_of(folder, number)).exists():
        yield Part.read(path)
        number += 1


def _write_sample(path: Path, sample: Sequence[pa.RecordBatch]) -> None:
    table = joined([pa.Table.from_batches([rows]) for rows in sample])
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    partial.replace(path)


def read_sample(path: Path) -> pa.Table:
    """A part's share of the sample."""
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all()


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _tuple(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)

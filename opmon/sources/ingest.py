"""The source ``ingest``: what model servers sent to opmon's own endpoint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from opmon.abc import Erasure, Flaw, Source
from opmon.errors import SourceError
from opmon.sources._folder import Entry
from opmon.sources._own_files import erase
from opmon.sources._passing import Passing
from opmon.sources._position import BEGIN, parse
from opmon.sources._since import Since, since_text
from opmon.sources._stored import open_place
from opmon.sources.files import Files
from opmon.types import Slice

LOST = b"opmon.lost"
"""The key of a file's metadata with what was lost: reason -> how many, as JSON."""
_PATTERN = "*.parquet"
_NOTHING_BEFORE = ".since"
"""A part that no file can be: what is kept for a monitor that began before anything was sent."""


@dataclass(frozen=True)
class Ingest(Passing):
    """What is sent to opmon over HTTP: `POST /v1/ingest/<monitor>` at the address that `ingest: {listen: ...}` says.

    `opmon serve` takes it, or `opmon ingest` alone: CloudEvents as the loggers of KServe and Seldon send them, requests
    of the V2 protocol and of MLflow, with or without their responses, and plain JSON rows, one, a list, or lines. What
    is acknowledged is on the disk. An event that comes again is acknowledged and kept once, if it has an id.

    Each input is a row with its own columns, by name or as a list in `features`, and `id`, `timestamp`, `prediction`,
    `scores`, `model_version` and `response`. A request waits for its response as long as `ingest: {settle: 1m}` says;
    then it is a row without a prediction. A response whose request never came is an input that was not logged. Rows can
    be read some minutes after they came. A column keeps the type that it had first: a value of another one is missing.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str | None = None
    """The folder with the rows; where nothing is said, one for the monitor below `state`."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Column -> string, int64, float64, float32 or bool, where the column's own type is not what is meant."""
    since: Since = None
    """Where a monitor that has read nothing begins: a date or a time, or `now` (all that is there is passed over)."""
    broken: Literal["stop", "skip", "quarantine"] = "quarantine"
    """`skip` leaves out files that cannot be read, `quarantine` also notes them for `opmon inputs`; `stop` is an error
    that names them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "since", since_text(self.since))
        Files(self.path or "-", "parquet", types=self.types, broken=self.broken)

    @property
    def receives(self) -> Path | None:
        return None if self.path is None else Path(self.path)

    def within(self, folder: Path) -> Source:
        return self if self.path is not None else replace(self, path=str(folder / "inputs"))

    @property
    def answers(self) -> tuple[str, ...]:
        return ("prediction", "scores", "response")

    def begins(self) -> Mapping[str, str]:
        if self._is_there:
            return super().begins()
        return {} if self.since is None else {_NOTHING_BEFORE: BEGIN}

    def flaws(self, positions: Mapping[str, str], limit: int | None = None) -> Sequence[Flaw]:
        return super().flaws(positions, limit) if self._is_there else ()

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        return super().pending(positions, limit) if self._is_there else []

    def for_cycle(self) -> Source:
        return super().for_cycle() if self._is_there else self

    def lost(self, slices: Sequence[Slice]) -> Mapping[str, int]:
        """What the files say in which the rows begin, and the ones without rows before them."""
        begun = {piece.part for piece in slices if not parse(piece.start, piece.part).started}
        lost, since = Counter[str](), Counter[str]()
        for entry in sorted(self._entries() if begun else [], key=lambda entry: entry.part):
            rows, told = _told(entry)
            since += told
            if rows:
                lost += since if entry.part in begun else Counter[str]()
                since = Counter[str]()
        return lost

    def erase(self, input_id: str, positions: Mapping[str, str], needed: Collection[str], *, really: bool) -> Erasure:
        if not self._is_there:
            return Erasure()
        return erase(Path(str(self.path)), input_id, positions, needed, really=really)

    def spent(self, positions: Mapping[str, str], before: float) -> list[tuple[str, Path]]:
        """The files that were read to their end, last written before this time, with their parts; oldest first.

        Files without rows are among them as soon as a later one was read: what they tell was told with it.
        """
        files: list[tuple[str, Path]] = []
        empty: list[tuple[str, Path]] = []
        for entry in sorted(self._entries() if self._is_there else [], key=lambda entry: entry.part):
            if entry.modified_ns > before * 1e9 or not isinstance(entry.path, str):
                break
            if parse(positions.get(entry.part), entry.part).finished_with(entry.size, entry.modified_ns):
                files += [*empty, (entry.part, Path(entry.path))]
                empty = []
            elif _told(entry)[0] == 0:
                empty.append((entry.part, Path(entry.path)))
            else:
                empty = []
        return files

    @property
    def _is_there(self) -> bool:
        """Whether anything was ever kept; an error where it is not known where that would be."""
        if self.path is None:
            raise SourceError("the source ingest has no folder outside of a monitor's configuration: give its path")
        return Path(self.path).is_dir()

    @cached_property
    def reader(self) -> Files:
        since = None if self.since is None else str(self.since)
        return Files(str(self.path), "parquet", _PATTERN, self.types, since=since, broken=self.broken)

    def _entries(self) -> list[Entry]:
        place = open_place(str(self.path), lambda part: part.endswith(".parquet"))
        return place.entries(lambda problem: None)


def _told(entry: Entry) -> tuple[int, Counter[str]]:
    """How many rows a file has, and what it says was lost."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with entry.open() as stream:
            metadata = pq.read_metadata(stream)
        return metadata.num_rows, Counter(json.loads((metadata.metadata or {}).get(LOST, b"{}")))
    except (OSError, pa.ArrowException, ValueError):
        return 1, Counter()  # reading its rows says what is wrong

"""The source ``recorder``: what ``opmon.Recorder`` wrote."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from opmon.abc import Erasure
from opmon.errors import InputError, SourceError
from opmon.recorder.counts import KEY, REASONS
from opmon.sources._folder import Entry
from opmon.sources._own_files import erase
from opmon.sources._passing import Passing
from opmon.sources._position import parse
from opmon.sources._stored import open_place
from opmon.sources.files import Files
from opmon.stores import AT_ONCE, scheme_of
from opmon.types import Slice

if TYPE_CHECKING:
    pass

_NAME = re.compile(r"(?P<name>.+)-(?P<writer>[0-9a-f]{32})-(?P<sequence>[0-9]{8})(?P<tally>\.tally)?\.parquet")
_WITH_ROWS = f"-{'[0-9a-f]' * 32}-{'[0-9]' * 8}.parquet"
GONE = "a file of the recorder is gone"


@dataclass(frozen=True)
class Recorder(Passing):
    """What ``opmon.Recorder`` wrote where the model is served, and what it could not write.

    Each row has ``id``, ``timestamp``, the inputs' own columns (``features``, ``text`` or ``image`` where they have no
    names), ``prediction``, ``scores``, ``model_version`` and ``inclusion``, the probability with which it was kept.
    Files tell how many inputs were dropped and why, and those that are missing between two others of the same process
    are missed: rounds show both as inputs that were not logged. What a process that was killed had not written yet
    nobody can tell; it is the last ``seconds_per_file`` at the most.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    """The folder, or the place in an object store, that the recorder was given."""
    name: str | None = None
    """The recorder's name, where several write into one folder."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Column -> string, int64, float64, float32 or bool, where processes recorded it in different types."""
    since: str | None = None
    """Where a monitor that has read nothing begins: a date or a time, or ``now`` (all that is there is passed over)."""
    broken: Literal["stop", "skip", "quarantine"] = "skip"
    """``skip`` leaves out what cannot be read and counts it, ``quarantine`` also notes it for ``opmon inputs``;
    ``stop`` is an error that names it."""

    def __post_init__(self) -> None:
        if self.name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            raise InputError(f"name is a recorder's name: letters, digits and ._-; got {self.name!r}")
        _ = self.reader

    @property
    def answers(self) -> tuple[str, ...]:
        return ("prediction", "scores")

    @property
    def inclusion(self) -> str | None:
        return "inclusion"

    def erase(self, input_id: str, positions: Mapping[str, str], needed: Collection[str], *, really: bool) -> Erasure:
        if scheme_of(self.path) is not None:
            return Erasure(unreached=(f"{self.path}: the recorder's files in an object store are to be removed there",))
        return erase(Path(self.path), input_id, positions, needed, really=really)

    def lost(self, slices: Sequence[Slice]) -> Mapping[str, int]:
        """Inputs that were dropped before these rows were written: told by the files in which the rows begin.

        A file without rows is told with the next one that has some, whichever process wrote it.
        """
        begun = {piece.part for piece in slices if not parse(piece.start, piece.part).started}
        if not begun:
            return {}
        files = self._listed()
        before = {(each.writer, each.sequence): each for each in files}
        telling: list[_File] = []
        since: list[_File] = []
        for file in files:
            since.append(file)
            if not file.tally:
                telling += since if file.entry.part in begun else []
                since = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return dict(sum(pool.map(lambda file: file.lost(before), telling), Counter[str]()))

    @cached_property
    def reader(self) -> Files:
        return Files(
            self.path, "parquet", f"{self.name or '*'}{_WITH_ROWS}", self.types, since=self.since, broken=self.broken
        )

    def _listed(self) -> list[_File]:
        """The recorder's files, oldest first."""
        folder = open_place(self.path, lambda part: self._is_own(part.rsplit("/", 1)[-1]))
        return [_File.of(entry) for entry in folder.entries(lambda problem: None)]

    def _is_own(self, file: str) -> bool:
        name = _NAME.fullmatch(file)
        return name is not None and self.name in (None, name["name"])


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a recorder, as its name tells."""

    entry: Entry
    writer: str
    sequence: int
    tally: bool

    @classmethod
    def of(cls, entry: Entry) -> Self:
        name = _NAME.fullmatch(entry.part.rsplit("/", 1)[-1])
        assert name is not None
        return cls(entry, name["writer"], int(name["sequence"]), name["tally"] is not None)

    def lost(self, files: Mapping[tuple[str, int], Self]) -> Counter[str]:
        """What was lost between the writer's file before this one and this one, files between them included."""
        told = self.told()
        before, now = told["before"], told["now"]
        gone = 0
        if self.sequence and (self.writer, self.sequence - 1) not in files:
            older = (files.get((self.writer, number)) for number in range(self.sequence - 2, -1, -1))
            last = next((file for file in older if file is not None), None)
            if last is not None:  # files that were all removed have been read; one that is missing has not
                then = last.told()["now"]
                gone, before = before["written"] - then["written"], then
        dropped = Counter(now["dropped"])
        dropped.subtract(before["dropped"])
        lost = Counter({REASONS.get(reason, reason): count for reason, count in dropped.items()})
        return +lost + Counter({GONE: gone} if gone else {})

    def told(self) -> dict[str, Any]:
        """What the file's metadata says."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        nothing = {"recorded": 0, "written": 0, "dropped": {}}
        try:
            with self.entry.open() as stream:
                found = json.loads((pq.read_metadata(stream).metadata or {})[KEY])
            return {"before": found["before"], "now": found["now"]}
        except (OSError, pa.ArrowException, KeyError, ValueError) as exc:
            if isinstance(exc, OSError) and exc.errno is not None:
                raise SourceError(f"{self.entry.part} cannot be opened: {exc.strerror or exc}") from exc
            return {"before": nothing, "now": nothing}  # damaged: reading its rows says so


def is_recorded(part: str) -> bool:
    """Whether a file's name is one that ``opmon.Recorder`` gives."""
    return _NAME.fullmatch(part.rsplit("/", 1)[-1]) is not None

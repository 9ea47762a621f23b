"""The source ``mlflow``."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from opmon.errors import InputError
from opmon.registry.logged import LoggedRun
from opmon.sources._damage import Damaged, stopping
from opmon.sources._folder import match_path
from opmon.sources._position import parse
from opmon.sources._schema import declared_types
from opmon.sources._since import Since, since_text
from opmon.sources.files import FORMATS, Files
from opmon.sources.mlflow.mirror import Mirror, folder_for
from opmon.sources.mlflow.mirrored import Mirrored, began, in_copies, logged
from opmon.types import Slice

_log = logging.getLogger(__name__)

_OVERLAP_MS = 86_400_000
"""Runs bear the time of the clock that ended them: so far back of the last one others are looked for."""
_MS = 1_000_000
_AT_ONCE = 20
_ENDINGS = (".json", *(end for ends in FORMATS.values() for end in ends))


@dataclass(frozen=True)
class Mlflow(Mirrored):
    """Inputs that were logged to the runs of an MLflow experiment: tables of `mlflow.log_table`, Parquet, CSV, JSONL.

    Each run's artifacts are read once it has finished, in the order in which runs ended; a run for each batch of inputs
    with one Parquet artifact is the good way. `unfinished: true` also reads runs that go on, as far as they are: text
    and tables may grow there. (`log_table` appends by writing the file again: rows of writers at the same time are
    lost, and opmon cannot know.) Artifacts are copied to this machine, and removed a day after they were read.
    """

    experiment: str
    """The experiment's name."""
    artifacts: str = "**"
    """Which artifacts, as a glob of their paths such as inputs/*.parquet; only tables count."""
    tracking_uri: str | None = field(default=None, repr=False)
    """The server; where nothing is said, MLFLOW_TRACKING_URI."""
    filter: str = ""
    """Which runs, as MLflow's search_runs reads it, such as tags.stage = 'production'."""
    since: Since = None
    """A date, a time, or now: what ended before is not read. It holds for a monitor that has not read anything."""
    unfinished: bool = False
    """Whether runs that have not finished are read too."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Column -> string, int64, float64, float32 or bool, where the file's own type is not what is meant."""
    broken: Literal["stop", "skip"] = "stop"
    """`skip` leaves out artifacts, rows and row groups that cannot be read."""

    def __post_init__(self) -> None:
        if not self.experiment.strip():
            raise InputError("experiment is empty; give the name of the experiment that the inputs are logged to")
        if self.broken not in ("stop", "skip"):
            raise InputError(f"broken must be one of stop, skip; got {self.broken!r}")
        object.__setattr__(self, "since", since_text(self.since))
        declared_types(self.types)

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """The rows of artifacts that are new, of runs in the order in which they ended."""
        mirror, known = self._mirror(), in_copies(positions)
        mirror.forget(known)
        known = mirror.hidden(began(positions)) | known
        found, missing = self._files(mirror).pending(known, limit), self._missing(mirror, positions)
        while limit is None or sum(piece.rows for piece in found) < limit:
            if not self._copied(mirror, missing):
                break
            found = self._files(mirror).pending(known, limit)
        return found

    def _mirror(self) -> Mirror:
        server = logged(self.tracking_uri)
        return Mirror(
            server, folder_for(server.where, f"{self.experiment}\n{self.artifacts}\n{self.filter}\n{self.unfinished}")
        )

    def _files(self, mirror: Mirror) -> Files:
        return Files(str(mirror.folder), types=self.types, broken=self.broken, settle_seconds=0.001)

    def copies_of(self, slices: Sequence[Slice]) -> Files:
        """The copies of the artifacts, fetched again where they are gone."""
        mirror = self._mirror()
        for piece in slices:
            mirror.require(piece.part, piece.stop)
        return self._files(mirror)

    def _missing(self, mirror: Mirror, positions: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
        """What is to be copied: run, path, and when the run ended, in nanoseconds."""
        reached = [parse(stop, part).modified_ns // _MS for part, stop in in_copies(positions).items()]
        first = began(positions) // _MS
        since = max(first, max(reached, default=0) - _OVERLAP_MS, 0)
        for run in mirror.logged.ended(self.experiment, self.filter, since):
            ended = (run.ended_ms or 0) * _MS
            for path, _ in self._wanted(mirror, run):
                if not mirror.has(run.run_id, path, ended, positions):
                    yield run.run_id, path, ended
        for run in mirror.logged.running(self.experiment, self.filter) if self.unfinished else ():
            for path, size in self._wanted(mirror, run):
                if mirror.size(run.run_id, path) != size:
                    yield run.run_id, path, time.time_ns()

    def _wanted(self, mirror: Mirror, run: LoggedRun) -> Iterator[tuple[str, int]]:
        for path, size in mirror.logged.artifacts(run.run_id):
            if path.lower().endswith(_ENDINGS) and match_path(path, tuple(self.artifacts.split("/"))):
                yield path, size

    def _copied(self, mirror: Mirror, missing: Iterator[tuple[str, str, int]]) -> bool:
        """Copy some more of what is missing; whether there was any."""
        some = list(itertools.islice(missing, _AT_ONCE))
        for run_id, path, ended in some:
            try:
                mirror.copy(run_id, path, ended)
            except Damaged as exc:
                if self.broken == "stop":
                    raise stopping(exc) from exc
                _log.warning("left out: %s", exc)
        return bool(some)

"""What one input held is removed wherever opmon put it; what was found out from it stays."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.errors import InputError, NotFoundError, OpmonError
from opmon.reports.failures import OVERVIEW
from opmon.sources.emptying import emptied, is_empty
from opmon.stages.captured import POSITION, name_of
from opmon.stages.drift import NAME as DRIFT_SAMPLE
from opmon.stages.erasing import removes
from opmon.stages.labelling import Desk, pull_labels
from opmon.stages.report import report_round
from opmon.stages.toolbox import Toolbox, folder_of
from opmon.store import erasing, positions, pruned, rounds, slices, speaking
from opmon.store.attachments import ERASED
from opmon.store.erasing import PAYLOADS
from opmon.store.pruned import Emptied
from opmon.store.rounds import Round
from opmon.tables import joined
from opmon.wording import counted

log = logging.getLogger(__name__)

_FAILURES, _DATASET, _PAGE = "failures/", "failures/failures.parquet", "round.html"
_ESTIMATE = "estimate.json"
"""A file of every report that shows no input."""
_ROBUSTNESS = "robustness/"
_FACTS = (*OVERVIEW, "error", ERASED)
"""The columns of the failures that hold nothing of the input itself."""


@dataclass
class Forgotten:
    """Where an input was found, and where it could not be removed; nothing in either means that it is nowhere."""

    found: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    unknown: str = ""
    """Of which rounds nothing tells any more whether they asked about it; empty where all of them tell."""


def erase_input(work: Toolbox, desk: Desk | None, input_id: str, *, really: bool) -> Forgotten:
    """Remove the payload of one input; labels, predictions and estimates stay, and its id with them.

    Each step may be repeated: after a kill, or where something did not answer, the next call goes on. Without
    ``really`` nothing is changed.
    """
    told = Forgotten()
    with work.store.read() as connection:
        told.unknown = _unknown(pruned.of_monitors(connection, [work.name]).get(work.name, ()))
        held = erasing.tasks_of(connection, work.name, input_id)
        keys = [task.key for task in speaking.tasks_by_id(connection, [each.task_id for each in held]).values()]
    there = sum(not each.erased for each in held)
    if there:
        told.found.append(f"the database: {counted(there, 'task')}")
    if really and held:
        with work.write() as connection:
            erasing.erase_input(connection, work.name, input_id, work.clock())
    if any(each.is_gold for each in held):
        told.unreached.append("the file of gold tasks, which is yours: it was one of them")
    if keys:
        _at_provider(work, desk, keys, told, really)
    for number in sorted({each.round for each in held if not each.is_gold}):
        with work.store.read() as connection:
            round_ = rounds.get(connection, work.name, number)
        places = [each.position for each in held if each.round == number and not each.is_gold]
        _Run(work, round_, told, really).erase(input_id, places)
    _in_source(work, input_id, told, really)
    if really and held and not work.store.write_back():
        told.unreached.append("the database's file: others read or write it for long; run this again")
    return told


def _unknown(gone: Sequence[Emptied]) -> str:
    """That rounds do not know any more what they asked about: what showed it went with their labels."""
    if not gone:
        return ""
    numbers, last = [each.number for each in gone], max(each.at for each in gone)
    which = f"round {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} rounds up to {max(numbers)}"
    return (
        f"of {which} the {pruned.words(last)}, and with them what showed their inputs: they do not tell any more "
        "whether they asked about it. Tables in MLflow that are still kept (frame.parquet, labels.parquet, "
        "labels.jsonl) may name it"
    )


def _at_provider(work: Toolbox, desk: Desk | None, keys: Collection[str], told: Forgotten, really: bool) -> None:
    """What annotators are shown elsewhere; their answers are heard first."""
    if desk is None:
        return
    told.found.append(f"the label provider {desk.name!r}: it may show {counted(len(keys), 'task')}")
    if not really:
        return
    try:
        _hear(work, desk)
        left = set(keys) - set(desk.ask(lambda: desk.provider.forget(keys)))
    except OpmonError as exc:
        told.unreached.append(f"the label provider {desk.name!r}: {exc}")
        return
    if left:
        told.unreached.append(f"the label provider {desk.name!r} cannot remove tasks: remove them there")


def _hear(work: Toolbox, desk: Desk) -> None:
    """Keep what annotators said; answers that cannot be taken hold up nothing."""
    try:
        pull_labels(work, desk)
    except InputError as exc:
        log.warning("%s", exc)


def _in_source(work: Toolbox, input_id: str, told: Forgotten, really: bool) -> None:
    """The files in which opmon itself keeps what production sent."""
    with work.store.read() as connection:
        stands, needed = positions.read(connection, work.name), slices.needed(connection, work.name)
    erased = work.settings.source.plugin.erase(input_id, stands, needed, really=really)
    told.found += erased.found
    told.unreached += erased.unreached
    if erased.positions and really:
        with work.write() as connection:
            positions.move(connection, work.name, erased.positions)


@dataclass(frozen=True)
class _Drawn:
    """A file of captured rows that holds the input."""

    rows: pa.Table
    """Those of the input, as they were."""
    mask: NDArray[np.bool_]
    """Which of the file's rows they are."""
    path: Path
    name: str


@dataclass
class _Run:
    """A round's files: on this machine's disk, and in its MLflow run.

    Whatever tells where else the input is goes after what it tells of: the captured rows last of all, and of the
    failures the dataset. So a call that was cut short is gone on with by the next.
    """

    work: Toolbox
    round: Round
    told: Forgotten
    really: bool

    def erase(self, input_id: str, places: Collection[int]) -> None:
        kept = {}
        if self.round.run_id is not None:
            if removes(self.work):
                kept = dict(self.work.registry.files(self.round.run_id))
            else:
                self.told.unreached.append(f"run {self.round.run_id} of round {self.round.number}: remove it there")
        with tempfile.TemporaryDirectory() as folder:
            drawn = list(self._drawn_rows(places, kept, Path(folder)))
            rows = [each.rows for each in drawn]
            shown = joined(rows) if rows else None
            self._sample(shown, kept, Path(folder))
            self._examples(shown, kept)
            self._failures(input_id, kept, Path(folder))
            self._empty(drawn)

    def _drawn_rows(self, places: Collection[int], kept: Collection[str], folder: Path) -> Iterator[_Drawn]:
        """What was captured of the input in each wave, as far as it is still there."""
        for name in map(name_of, range(self.round.waves)):
            for path, where in self._copies(name, kept, folder):
                table = pq.read_table(path)
                mask = np.isin(table[POSITION].to_numpy(), list(places))
                own = table.filter(pa.array(mask)).drop_columns(POSITION)
                if own.num_rows and not is_empty(own, ()):
                    self.told.found.append(f"{where}: {counted(own.num_rows, 'row')}")
                    yield _Drawn(own, mask, path, name)

    def _sample(self, shown: pa.Table | None, kept: Collection[str], folder: Path) -> None:
        """Take rows that hold the same values out of the sample for drift, which knows no ids."""
        if shown is None:
            return
        for path, where in self._copies(DRIFT_SAMPLE, kept, folder):
            table = pq.read_table(path)
            common = [name for name in table.column_names if name in shown.column_names]
            if not common:
                continue
            alike = joined([table.select(common), shown.select(common)])  # the sample may hold them in another type
            every = [tuple(map(repr, row.values())) for row in alike.to_pylist()]
            rows, known = every[: table.num_rows], every[table.num_rows :]
            mask = np.array([row in known for row in rows], bool)
            if mask.any():
                self.told.found.append(f"{where}: {counted(int(mask.sum()), 'row')} like it")
                if self.really:
                    self._put(table.filter(pa.array(~mask)), path, DRIFT_SAMPLE)

    def _examples(self, shown: pa.Table | None, kept: Collection[str]) -> None:
        """Take away the pages on robustness, whose examples may be of the input."""
        pages = [name for name in kept if name.startswith(_ROBUSTNESS)] if shown is not None else []
        if pages:
            place = f"robustness of round {self.round.number} in MLflow"
            self.told.found.append(f"{place}: {counted(len(pages), 'file')} that may show it")
        for name in pages if self.really else ():
            self.work.registry.remove_file(self.round.run_id or "", name)

    def _failures(self, input_id: str, kept: Collection[str], folder: Path) -> None:
        """Take away the failures that show the input, and report the round anew without what it held."""
        showing: list[str] = []
        if self._is_failure(input_id, kept, folder):
            showing = [name for name in kept if name.startswith(_FAILURES) or name == _PAGE]
        elif not self._lacks_report(kept):
            return
        what = counted(len(showing), "file") if showing else "to be written again"
        self.told.found.append(f"failures of round {self.round.number} in MLflow: {what}")
        if self.really:
            for name in sorted(showing, key=lambda name: name == _DATASET):
                self.work.registry.remove_file(self.round.run_id or "", name)
            report_round(self.work, self.round)

    def _is_failure(self, input_id: str, kept: Collection[str], folder: Path) -> bool:
        """Whether the failures hold what the input held."""
        if _DATASET not in kept:
            return False
        table = pq.read_table(self.work.registry.download(self.round.run_id or "", _DATASET, folder))
        own = table.filter(pc.equal(table["input_id"], input_id))
        return bool(own.num_rows) and not is_empty(own, _FACTS)

    def _lacks_report(self, kept: Collection[str]) -> bool:
        """Whether failures or the page were taken away to be written again, and that was cut short."""
        pruned = {PAYLOADS, "artifacts"}.intersection(self.round.pruned or ())
        return not pruned and _ESTIMATE in kept and not {_DATASET, _PAGE}.issubset(kept)

    def _empty(self, drawn: Sequence[_Drawn]) -> None:
        """Empty the rows of the input in what was captured; a report that closed the round has left MLflow's alone."""
        for each in drawn if self.really else ():
            if each.path.exists():
                self._put(emptied(pq.read_table(each.path), each.mask, (POSITION,)), each.path, each.name)

    def _local(self, name: str) -> Path:
        return folder_of(self.work.folder, self.round) / name

    def _copies(self, name: str, kept: Collection[str], folder: Path) -> Iterator[tuple[Path, str]]:
        """The file on this machine, and a copy in ``folder`` of the one in MLflow, with where it is in words."""
        if self._local(name).exists():
            yield self._local(name), f"{self._local(name)}"
        if name in kept and self.round.run_id is not None:
            try:
                path = self.work.registry.download(self.round.run_id, name, folder)
            except NotFoundError:
                return
            yield path, f"{name} of round {self.round.number} in MLflow"

    def _put(self, table: pa.Table, path: Path, name: str) -> None:
        """Write the table in the place of the file, and of the one in MLflow where it is that one's copy."""
        partial = path.with_suffix(".partial")
        pq.write_table(table, partial, compression="zstd")
        partial.replace(path)
        if path != self._local(name):
            self.work.registry.log_artifact(self.round.run_id or "", path)

"""What was kept for as long as the configuration says is removed: from database, disk and MLflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from opmon.stages.drift import NAME as DRIFT_SAMPLE
from opmon.stages.frames import NAME as FRAME
from opmon.stages.proxies import FILE as GUESSES
from opmon.stages.toolbox import Toolbox, folder_of
from opmon.store import erasing, rounds, versions
from opmon.store.erasing import PAYLOADS, Weight
from opmon.store.rounds import Round

SHOWING = ("drawn-*.parquet", "failures/*", "round.html", DRIFT_SAMPLE, "robustness/*")
"""The files of a round's run in which inputs are shown."""
_OF: Mapping[str, Sequence[str]] = {PAYLOADS: SHOWING, "frames": (FRAME, GUESSES), "artifacts": ("*",)}
"""By the key of ``keep`` the files that go; a star stands for any number of folders, too."""


@dataclass(frozen=True)
class Erased:
    """What of a round goes, or went: which kinds, of how many tasks, how many files and how many bytes in all."""

    round: int
    kinds: tuple[str, ...]
    tasks: int
    files: int
    bytes: int
    unreached: bool = False
    """Whether its registry keeps files that opmon cannot remove there."""


def prune(work: Toolbox, *, really: bool) -> Iterator[Erased]:
    """Remove what closed rounds have kept for longer than ``keep`` says; or only say what would go.

    Files go before the round is noted as pruned, each round by itself: after a kill the next call goes on.
    """
    keep = work.settings.keep
    ages = {PAYLOADS: keep.payloads, "frames": keep.frames, "artifacts": keep.artifacts}
    before = {kind: work.clock() - age for kind, age in ages.items() if age is not None}
    with work.store.read() as connection:
        due = erasing.due(connection, work.name, before)
    for number, kinds in due.items():
        with work.store.read() as connection:
            round_ = rounds.get(connection, work.name, number)
            weight = erasing.weight(connection, round_.id) if PAYLOADS in kinds else Weight(0, 0)
            serves = versions.first_scored_run(connection, round_) is None
        yield _pruned(work, round_, kinds, weight, serves, really)


def _pruned(work: Toolbox, round_: Round, kinds: Sequence[str], weight: Weight, serves: bool, really: bool) -> Erased:
    """Prune one round; the drift of later ones is measured from the sample of the first, where that ``serves``."""
    patterns = [pattern for kind in kinds for pattern in _OF[kind]]
    stays = DRIFT_SAMPLE if serves and work.settings.drift.enabled else None
    local = {path: path.stat().st_size for path in _local(work, round_) if _fits(path.name, patterns)}
    there = _kept(work, round_)
    remote = {path: size for path, size in there.items() if _fits(path, patterns) and path != stays}
    if really:
        for path in local:
            path.unlink(missing_ok=True)
        for name in remote:
            work.registry.remove_file(round_.run_id or "", name)
        with work.write() as connection:
            if PAYLOADS in kinds:
                erasing.erase(connection, round_.id, work.clock())
            erasing.note(connection, round_, kinds)
    return Erased(
        round_.number,
        tuple(kinds),
        weight.tasks,
        len(local) + len(remote),
        weight.bytes + sum(local.values()) + sum(remote.values()),
        unreached=round_.run_id is not None and not removes(work),
    )


def removes(work: Toolbox) -> bool:
    """Whether the registry removes files of its runs."""
    return "remove files" in work.registry.abilities


def _kept(work: Toolbox, round_: Round) -> Mapping[str, int]:
    return work.registry.files(round_.run_id) if round_.run_id is not None and removes(work) else {}


def _local(work: Toolbox, round_: Round) -> list[Path]:
    folder = folder_of(work.folder, round_)
    return sorted(path for path in folder.glob("*") if path.is_file())


def _fits(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)

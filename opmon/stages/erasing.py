"""What was kept for as long as the configuration says is removed: from database, disk and MLflow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from opmon.stages.census import told
from opmon.stages.drift import NAME as DRIFT_SAMPLE
from opmon.stages.frames import NAME as FRAME
from opmon.stages.proxies import FILE as GUESSES
from opmon.stages.toolbox import Toolbox, folder_of
from opmon.store import emptying, erasing, positions, rounds, versions
from opmon.store.emptying import ROUNDS, Held, Reach
from opmon.store.engine import Connection
from opmon.store.erasing import PAYLOADS, Weight
from opmon.store.rounds import Round

SHOWING = ("drawn-*.parquet", "failures/*", "round.html", DRIFT_SAMPLE, "robustness/*")
"""The files of a round's run in which inputs are shown."""
_OF: Mapping[str, Sequence[str]] = {PAYLOADS: SHOWING, "frames": (FRAME, GUESSES), "artifacts": ("*",), ROUNDS: ()}
"""By the key of ``keep`` the files that go; a star stands for any number of folders, too."""


@dataclass(frozen=True)
class Erased:
    """What of a round goes, or went: which kinds, how many tasks showed it, how many files and bytes in all."""

    round: int
    kinds: tuple[str, ...]
    tasks: int
    files: int
    bytes: int
    unreached: bool = False
    """Whether its registry keeps files that opmon cannot remove there."""
    emptied: int = 0
    """Its tasks that go altogether …"""
    labels: int = 0
    """… with so many labels."""
    stays: str = ""
    """Why its labels stay, although they are old enough."""


def prune(work: Toolbox, *, really: bool) -> Iterator[Erased]:
    """Remove what closed rounds have kept for longer than ``keep`` says; or only say what would go.

    Files go before the round is noted as pruned, each round by itself: after a kill the next call goes on.
    """
    keep = work.settings.keep
    ages = {PAYLOADS: keep.payloads, "frames": keep.frames, "artifacts": keep.artifacts, ROUNDS: keep.rounds}
    before = {kind: work.clock() - age for kind, age in ages.items() if age is not None}
    with work.store.read() as connection:
        due = erasing.due(connection, work.name, before)
        old = [number for number, kinds in due.items() if ROUNDS in kinds]
        stays = emptying.stays(connection, work.name, old, _reach(work)) if old else {}
        stands = frozenset(positions.read(connection, work.name)) if len(old) > len(stays) else frozenset()
    for number, kinds in due.items():
        with work.store.read() as connection:
            round_ = rounds.get(connection, work.name, number)
            found = _found(connection, round_, kinds, stays.get(number, ""))
            serves = versions.first_scored_run(connection, round_) is None
        yield _pruned(work, round_, found, serves, stands, really)
    if really and due:
        work.store.write_back()  # where others use it for long, it is done when they write


def _reach(work: Toolbox) -> Reach:
    """How far back anything may look that is configured."""
    settings = work.settings
    assert settings.keep.rounds is not None
    return Reach(settings.newest_kept, settings.rolling.within, work.clock() - settings.keep.rounds)


@dataclass(frozen=True)
class _Found:
    """What of a round is old enough to go, and what that takes in the database."""

    kinds: tuple[str, ...]
    shown: Weight
    held: Held
    stays: str


def _found(connection: Connection, round_: Round, due: Sequence[str], stays: str) -> _Found:
    """Its labels take along what still shows its inputs: nothing would know any more whose they are."""
    empties = ROUNDS in due and not stays
    kinds = [kind for kind in due if kind != ROUNDS]
    if empties:
        kinds += [ROUNDS] if PAYLOADS in (*kinds, *(round_.pruned or ())) else [PAYLOADS, ROUNDS]
    shown = erasing.weight(connection, round_.id) if PAYLOADS in kinds else Weight(0, 0)
    held = emptying.held(connection, round_) if empties else Held(0, 0, 0)
    return _Found(tuple(kinds), shown, held, stays)


def _pruned(work: Toolbox, round_: Round, found: _Found, serves: bool, stands: Collection[str], really: bool) -> Erased:
    """Prune one round; the drift of later ones is measured from the sample of the first, where that ``serves``."""
    kinds, patterns = found.kinds, [pattern for kind in found.kinds for pattern in _OF[kind]]
    stays = DRIFT_SAMPLE if serves and work.settings.drift.enabled else None
    local = {path: path.stat().st_size for path in _local(work, round_) if _fits(path.name, patterns)}
    there = _kept(work, round_) if patterns else {}
    remote = {path: size for path, size in there.items() if _fits(path, patterns) and path != stays}
    gone = _remove(work, round_, found, local, remote, stands) if really and kinds else True
    empties = ROUNDS in kinds and gone
    return Erased(
        round_.number,
        kinds if gone else tuple(kind for kind in kinds if kind != ROUNDS),
        found.shown.tasks,
        len(local) + len(remote),
        found.shown.bytes + sum(local.values()) + sum(remote.values()) + (found.held.bytes if empties else 0),
        unreached=bool(patterns) and round_.run_id is not None and not removes(work),
        emptied=found.held.tasks if empties else 0,
        labels=found.held.labels if empties else 0,
        stays=found.stays if gone else "labels came for them meanwhile: run the monitor first",
    )


def _remove(
    work: Toolbox,
    round_: Round,
    found: _Found,
    local: Iterable[Path],
    remote: Iterable[str],
    stands: Collection[str],
) -> bool:
    """Remove it all; false where labels came meanwhile, so that these stay."""
    for path in local:
        path.unlink(missing_ok=True)
    for name in remote:
        work.registry.remove_file(round_.run_id or "", name)
    with work.write() as connection:
        if PAYLOADS in found.kinds:
            erasing.erase(connection, round_.id, work.clock())
        gone = ROUNDS not in found.kinds or emptying.empty(connection, round_, work.clock(), stands)
        erasing.note(connection, round_, found.kinds if gone else [kind for kind in found.kinds if kind != ROUNDS])
    if ROUNDS in found.kinds and gone:
        told(work, round_)
    return gone


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

"""What annotators saw is erased when it was kept for as long as the configuration says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opmon.stages.toolbox import Toolbox
from opmon.store import erasing
from opmon.store.erasing import Erasable

_CAPTURED = "drawn-*.parquet"


@dataclass(frozen=True)
class Erased:
    """What of a round goes, or went: of how many tasks, how many bytes in the database and on this machine's disk."""

    round: int
    tasks: int
    bytes: int
    run_id: str | None
    """Its MLflow run, which keeps what was logged there."""


def erase_payloads(work: Toolbox, *, really: bool) -> Sequence[Erased]:
    """Erase what closed rounds have kept for longer than ``labels.keep_payloads``; or only say what would go.

    Each round is one transaction: after a kill the next call goes on.
    """
    keep = work.settings.labels.keep_payloads
    if keep is None:
        return ()
    with work.store.read() as connection:
        old = erasing.erasable(connection, work.name, work.clock() - keep)
    return tuple(_erased(work, each, really) for each in old)


def _erased(work: Toolbox, old: Erasable, really: bool) -> Erased:
    files = list(work.round_folder(old.round).glob(_CAPTURED))
    size = old.bytes + sum(path.stat().st_size for path in files)
    if really:
        for path in files:
            path.unlink(missing_ok=True)
        with work.write() as connection:
            erasing.erase(connection, old.round.id, work.clock())
    return Erased(old.round.number, old.tasks, size, old.round.run_id)

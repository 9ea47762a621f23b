"""Tasks go to the label provider, and answers come back: what is done with neither doubles when it is done again.

A provider is a plugin that may hang, fail or be down for days. It is asked in a thread that is waited for only so long,
and one that failed is left alone for a while, longer each time: rounds, and other monitors, go on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from opmon.abc import LabelProvider, Pulled, Said
from opmon.config import MonitorSettings
from opmon.errors import InputError, OpmonError, UnavailableError
from opmon.redaction import redacted
from opmon.stages.toolbox import Toolbox
from opmon.store import handing, queue
from opmon.store.engine import Connection
from opmon.store.matching import match
from opmon.types import Label
from opmon.waiting import Asking

log = logging.getLogger(__name__)

T = TypeVar("T")

RECONCILE = timedelta(hours=1)
"""How often a provider is asked which tasks it still has."""
FIRST_REST, LONGEST_REST = timedelta(seconds=30), timedelta(hours=1)
_TOLD = 3


@dataclass
class Desk:
    """Where a monitor's tasks are handed out: its label provider, and the call to it that still hangs."""

    provider: LabelProvider
    name: str
    identity: str
    """Another identity is another place: it is handed all open tasks."""
    monitor: str = ""

    def ask(self, function: Callable[[], T]) -> T:
        """Call the provider and wait for it as long as it says; while a call hangs no other is begun."""
        asking = Asking(
            kind="label provider",
            key=f"the tasks of {self.monitor} at {self.identity}",
            shown=f"the label provider {self.name!r}",
            target=self.provider.asks or f"{self.name} of {self.monitor}",
            seconds=self.provider.patience,
        )
        try:
            return asking.call(function)
        except OpmonError:
            raise
        except OSError as exc:
            raise UnavailableError(f"the label provider {self.name!r}: {exc}") from exc
        except Exception as exc:
            log.exception("the label provider %s failed", self.name)
            raise UnavailableError(f"the label provider {self.name!r} failed: {type(exc).__name__}: {exc}") from exc


def desk_of(settings: MonitorSettings) -> Desk | None:
    """The desk of a monitor; None where its tasks only wait for ``opmon labels export``."""
    chosen = settings.labels.provider
    if chosen is None:
        return None
    return Desk(chosen.plugin.bind(settings.name, settings.guide), chosen.type, chosen.identity, settings.name)


def pull_labels(work: Toolbox, desk: Desk | None) -> int:
    """Keep what the provider has heard; gives how many labels are new. What cannot be is told in one error."""
    if desk is None or (state := _rested(work, desk)) is None:
        return 0
    pulled = _answered(work, desk, lambda: desk.provider.pull(state.cursor))
    with work.write() as connection:
        new, refused = _keep(connection, work, pulled)
        handing.note(connection, work.name, desk.identity, cursor=pulled.cursor)
    problems = [*pulled.problems, *refused]
    if problems:
        more = f"; and {len(problems) - _TOLD:,} more" if len(problems) > _TOLD else ""
        raise InputError(
            f"the label provider {desk.name!r} gave {len(problems):,} that cannot be taken: "
            f"{'; '.join(problems[:_TOLD])}{more}"
        )
    return new


def push_tasks(work: Toolbox, desk: Desk | None) -> int:
    """Hand the provider the open tasks that it was not given, or has lost; gives how many those are."""
    if desk is None or (state := _rested(work, desk)) is None:
        return 0
    if state.reconciled_at is None or work.clock() >= state.reconciled_at + RECONCILE:
        _reconcile(work, desk)
    pushed = 0
    while True:
        with work.store.read() as connection:
            tasks = handing.unhanded(connection, work.name, desk.identity, desk.provider.batch, work.clock())
        if not tasks:
            break
        _answered(work, desk, lambda: desk.provider.push(tasks))  # noqa: B023 - called before the next ones
        with work.write() as connection:
            handing.note_handed(connection, desk.identity, [task.id for task in tasks], work.clock())
        pushed += len(tasks)
    if state.failures:
        with work.write() as connection:
            well = {"failures": 0, "failing_since": None, "rests_until": None, "problem": None}
            handing.note(connection, work.name, desk.identity, **well)
    return pushed


def _reconcile(work: Toolbox, desk: Desk) -> None:
    with work.store.read() as connection:
        given = handing.open_with(connection, work.name, desk.identity)
    held = set(_answered(work, desk, lambda: desk.provider.reconcile(frozenset(given))))
    lost = [task for key, task in given.items() if key not in held]
    if lost:
        log.warning("the label provider %s has lost %d tasks: they are handed over again", desk.name, len(lost))
    with work.write() as connection:
        handing.take_back(connection, desk.identity, lost)
        handing.note(connection, work.name, desk.identity, reconciled_at=work.clock())


def _rested(work: Toolbox, desk: Desk) -> handing.Standing | None:
    """How the provider stands; None while it is left alone."""
    with work.store.read() as connection:
        state = handing.standing(connection, work.name, desk.identity)
    return None if state.rests_until is not None and work.clock() < state.rests_until else state


def _answered(work: Toolbox, desk: Desk, function: Callable[[], T]) -> T:
    """What the provider answers; it rests after a failure, and they are counted until it has done all it was asked."""
    try:
        return desk.ask(function)
    except OpmonError as exc:
        with work.write() as connection:
            before, now = handing.standing(connection, work.name, desk.identity), work.clock()
            rest = min(FIRST_REST * 2.0 ** min(before.failures, 20), LONGEST_REST)
            handing.note(
                connection,
                work.name,
                desk.identity,
                failures=before.failures + 1,
                failing_since=before.failing_since or now,
                rests_until=now + rest,
                problem=redacted(str(exc)),
            )
        raise


@dataclass(frozen=True)
class _Line:
    """An answer as tasks are looked up by."""

    line: int
    task_key: str | None
    input_id: str | None
    monitor: str
    annotator: str
    task_id: int | None = None
    round: int | None = None


def _keep(connection: Connection, work: Toolbox, pulled: Pulled) -> tuple[int, list[str]]:
    """Record what can be recorded and is new; gives how many those are, and what is wrong with the others."""
    lines = [
        _Line(number, said.task_key, said.input_id, work.name, said.annotator)
        for number, said in enumerate(pulled.said, 1)
    ]
    matched = match(connection, lines, corrected=True)
    pairs = zip(pulled.said, matched.task_ids, strict=True)
    labels = [_label(said, task) for said, task in pairs if task is not None]
    recorded, problems = queue.record_possible(connection, labels, work.clock())
    if matched.pruned:
        first = next(why for line, why in matched.refused if line in matched.pruned)
        log.warning(
            "%d answers are not taken, of rounds whose labels were pruned; the first %s", len(matched.pruned), first
        )
    return recorded.new, [*matched.faults, *problems]


def _label(said: Said, task_id: int) -> Label:
    return Label(task_id, said.annotator, said.truth, said.at, said.why, said.seconds)

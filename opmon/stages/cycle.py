"""What one cycle of a monitor did, and how it goes on where a step fails."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from opmon import disk
from opmon.ceiling import shortage
from opmon.errors import LeaseLost, OpmonError
from opmon.logs.place import within
from opmon.redaction import redacted
from opmon.stages.toolbox import Toolbox
from opmon.store import rounds
from opmon.store.rounds import Round

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass
class Cycle:
    """What one :meth:`Monitor.advance` did."""

    opened: int = 0
    closed: int = 0
    delivered: int = 0
    undelivered: int = 0
    waiting: int = 0
    """Rounds that wait for labels."""
    problems: list[OpmonError] = field(default_factory=list)
    """What could not be done this time; the round it belongs to will be tried again."""
    faults: list[Exception] = field(default_factory=list)
    """What should never happen; the first one is raised once everything else is done."""
    kept_out: str | None = None
    """Why no inputs were taken on."""
    until: float = math.inf
    """When no further step is begun, by the clock that only goes forward."""

    began: float = field(default_factory=time.monotonic)
    """When it began, by the same clock."""

    @property
    def has_done(self) -> bool:
        """Whether anything was done: what could not be is told when it is met with."""
        return bool(self.opened or self.closed or self.delivered)

    @property
    def is_over(self) -> bool:
        """Whether its time is over: there may be more to do."""
        return time.monotonic() > self.until

    def __str__(self) -> str:
        """What was done, in words.

        >>> print(Cycle(opened=1, waiting=2, undelivered=1))
        1 round opened, 1 event not delivered yet, 2 rounds wait for labels
        """
        counts = (
            (self.opened, "{} round{} opened"),
            (self.closed, "{} round{} closed"),
            (self.delivered, "{} event{} delivered"),
            (self.undelivered, "{} event{} not delivered yet"),
            (len(self.problems), "{} problem{}"),
        )
        words = [form.format(count, "" if count == 1 else "s") for count, form in counts if count]
        if self.waiting:
            words.append("1 round waits for labels" if self.waiting == 1 else f"{self.waiting} rounds wait for labels")
        return ", ".join(words) or "nothing to do"


def attempt(
    work: Toolbox, cycle: Cycle, step: Callable[[], T], round_: Round | None = None, stage: str | None = None
) -> T | None:
    """Do a step; what cannot be done now is kept with its reason and tried again next time."""
    with within(monitor=work.name, round=None if round_ is None else round_.number, stage=stage):
        return _attempt(work, cycle, step, round_)


def _attempt(work: Toolbox, cycle: Cycle, step: Callable[[], T], round_: Round | None) -> T | None:
    try:
        return step()
    except LeaseLost:
        raise
    except OpmonError as exc:
        problem = str(exc)
        if not any(problem in str(known) for known in cycle.problems):  # a round may have met the same trouble
            cycle.problems.append(exc)
    except Exception as exc:  # the other rounds go on, and what was decided is delivered, before it is raised
        with work.write():  # LeaseLost where another process has taken over: it may have cleared what this one needed
            pass
        lacking = disk.trouble(exc, work.folder) or shortage(exc)
        if lacking is not None:
            cycle.problems.append(lacking)
            problem = str(lacking)
        else:
            cycle.faults.append(exc)
            problem = f"a fault in opmon, please report it: {type(exc).__name__}: {exc}"
            log.exception("the traceback of the fault")
    log.warning("%s: %s", f"round {round_.number} of {round_.monitor}" if round_ else work.name, problem)
    problem = redacted(problem)  # it is kept, and shown to all who may see the monitor
    if round_ is None:
        cycle.kept_out = problem
    else:
        with work.write() as connection:
            rounds.update(connection, round_.id, problem=problem)
    return None

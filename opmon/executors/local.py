"""The executor ``local``: jobs run in this process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from opmon.abc import Executor, J, R


@dataclass(frozen=True)
class Local(Executor):
    """Runs each job here when its result is asked for."""

    def run(self, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
        return map(function, jobs)

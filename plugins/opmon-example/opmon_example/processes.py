"""The executor ``processes``: jobs run side by side in fresh processes of this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from opmon.abc import Executor, J, R
from opmon.errors import InputError, UnavailableError


@dataclass(frozen=True)
class Processes(Executor):
    """Starts ``workers`` processes for a round, and ends them with it: what a model leaks or breaks goes with them.

    Jobs on other machines are the same: send ``function`` and a job there, and give back what comes, in order.
    """

    workers: int = 2
    rows: int | None = 250_000

    def __post_init__(self) -> None:
        for name, value in (("workers", self.workers), ("rows", self.rows)):
            if value is not None and value < 1:
                raise InputError(f"{name} is a whole number from 1; got {value}")

    def run(self, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
        if not jobs:
            return
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads of this process half done
        with ProcessPoolExecutor(min(self.workers, len(jobs)), mp_context=context) as pool:
            try:
                yield from pool.map(function, jobs)
            except BrokenProcessPool as exc:
                raise UnavailableError(
                    f"a process that scored ended by itself ({exc}): was there too little memory? The jobs that are "
                    f"left are run the next time; lower 'workers' if it happens again"
                ) from exc

"""The contract of executors, which run jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from opmon.abc.plugin import Plugin

J = TypeVar("J")
"""A job of an executor."""
R = TypeVar("R")
"""The result of a job."""


class Executor(Plugin, ABC):
    """Runs jobs: here, in other processes, or on other machines.

    A job and its result can be pickled, and the function is one that the other side can import. A job writes into a
    folder, which must be the same one for everybody (a shared disk), and may be run again: after a kill, or twice at
    the same time; it then gives the same result.
    """

    rows: int | None = None
    """About how many inputs one job should have, as far as they can be told apart: a file is never cut. None: a round
    is one job."""

    @abstractmethod
    def run(self, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
        """``function(job)`` of every job, in their order, each as soon as it and those before it are done.

        An error of a job is raised as it is, an :class:`~opmon.errors.OpmonError` among them; whoever does not answer
        is an :class:`~opmon.errors.UnavailableError`: the round then goes on the next time, with the jobs left to do.
        """

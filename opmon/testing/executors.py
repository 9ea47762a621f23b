"""The suite that every executor passes: the result of each job, in order, wherever it runs."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

from opmon.abc import Executor
from opmon.errors import SourceError


@dataclass(frozen=True)
class Job:
    """A small job: its number, and the folder that it writes into."""

    number: int
    folder: Path


def check_executor(executor: Executor, folder: Path) -> None:
    """Check an executor on jobs that write into ``folder``."""
    assert isinstance(executor, Executor), f"{type(executor).__name__} does not subclass opmon.abc.Executor"
    assert executor.rows is None or executor.rows >= 1, f"rows is a whole number from 1, or None; got {executor.rows!r}"
    pickle.dumps(executor)
    jobs = [Job(number, folder) for number in range(5)]
    assert list(executor.run(written, ())) == [], "without jobs there are results"
    for _ in range(2):  # a round may be run again
        assert list(executor.run(written, jobs)) == [0, 1, 4, 9, 16], "the results are not those of the jobs, in order"
    files = sorted(path.name for path in folder.iterdir())
    assert files == ["0", "1", "2", "3", "4"], f"what the jobs wrote is not in their folder; there are {files}"
    _raises(executor, jobs)


def _raises(executor: Executor, jobs: list[Job]) -> None:
    results = iter(executor.run(refused, jobs))
    assert [next(results), next(results)] == [0, 1], "the jobs before one that fails have results"
    try:
        more = list(results)
    except SourceError as exc:
        if "job 2" in str(exc):
            return
        raise AssertionError(f"the error of a job says something else: {exc}") from exc
    raise AssertionError(f"the error of a job is not raised; {len(more)} more results came")


def written(job: Job) -> int:
    """The square of a job's number, which it also writes."""
    (job.folder / str(job.number)).write_text(str(job.number**2))
    return job.number**2


def refused(job: Job) -> int:
    """Raise an error from the third job on."""
    if job.number >= 2:
        raise SourceError(f"job {job.number} cannot be done")
    return job.number

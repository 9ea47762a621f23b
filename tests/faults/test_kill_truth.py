"""Kill a cycle while it takes truths: none is lost, and none counts twice."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.monitor import Monitor
from opmon.store import queue, rounds, truths
from opmon.truth.kept import Kept
from tests.forked import forks

TRUTH = {"truth": {"source": {"path": "truth"}, "id": "order", "label": "outcome", "at": "known_at"}}


def killed(config: str, where: str) -> None:
    """A cycle that ends when it comes to a place."""
    place, name = {"recorded": (truths, "note"), "kept": (Kept, "_write"), "merged": (Kept, "_old")}[where]
    begun = getattr(place, name)

    def last_words(*args: Any, **kwargs: Any) -> None:
        if where != "kept":
            begun(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(place, name, last_words)
    Monitor.from_yaml(config).advance()


def write_truth(folder: Path, known: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    at = [datetime(2026, 3, 1, 12, tzinfo=UTC)] * len(known)
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table({"order": list(known), "outcome": list(known.values()), "known_at": at}), path)


@pytest.mark.parametrize("where", ["recorded", "kept", "merged"])
def test_a_cycle_killed_while_it_takes_truths(workbench: Any, database: str, where: str) -> None:
    config, monitor = workbench.write_yaml(database, **TRUTH), workbench.monitor(database, **TRUTH)
    folder = workbench.folder / "truth"
    workbench.write_window()
    write_truth(folder, {"w1-0": workbench.truth["w1-0"]})
    monitor.advance()
    write_truth(folder, workbench.truth)
    process = forks().Process(target=killed, args=(str(config), where))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        assert (round_.state, queue.count(connection, round_.id)) == ("closed", round_.asked)
        assert truths.last_read(connection, [workbench.name])[workbench.name].taken == 201
    files = (workbench.folder / ".opmon" / "truth").rglob("*.parquet")
    assert max(pq.read_metadata(path).num_rows for path in files) == len(workbench.truth)

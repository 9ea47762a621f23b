"""Kill a cycle between what a label provider was told and what opmon noted: nothing is asked or counted twice."""

from __future__ import annotations

import csv
import os
import signal
from pathlib import Path
from typing import Any

from opmon.monitor import Monitor
from opmon.stages import labelling
from opmon.store import queue, rounds
from tests.forked import forks


def killed(config: str, module: str, name: str) -> None:
    """A cycle that ends when it comes to a function of labelling's."""
    place = getattr(labelling, module)
    begun = getattr(place, name)

    def last_words(*args: Any, **kwargs: Any) -> None:
        if name == "record_possible":
            begun(*args, **kwargs)  # in a transaction that never ends
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(place, name, last_words)
    Monitor.from_yaml(config).advance()


def cycle_killed_at(config: Path, module: str, name: str) -> None:
    process = forks().Process(target=killed, args=(str(config), module, name))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def rows(workbench: Any) -> dict[Path, list[dict[str, str]]]:
    found = {}
    for path in sorted((workbench.folder / "labels" / workbench.name).glob("*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as stream:
            found[path] = list(csv.DictReader(stream))
    return found


def test_a_cycle_killed_while_it_hands_out_or_hears(workbench: Any, database: str) -> None:
    provider = {"labels": {"provider": {"path": "labels"}}}
    config, monitor = workbench.write_yaml(database, **provider), workbench.monitor(database, **provider)
    workbench.write_window()
    cycle_killed_at(config, "handing", "note_handed")
    handed = [row["task_key"] for some in rows(workbench).values() for row in some]
    assert handed, "it was killed before it handed anything out"
    assert monitor.advance().problems == []
    assert [row["task_key"] for some in rows(workbench).values() for row in some] == handed

    for path, some in rows(workbench).items():
        with path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.DictWriter(stream, list(some[0]))
            table.writeheader()
            table.writerows(row | {"label": workbench.truth[row["input_id"]]} for row in some)
    cycle_killed_at(config, "queue", "record_possible")
    with monitor.store.read() as connection:
        assert queue.count(connection, 1) == 0
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        assert queue.count(connection, 1) == len(handed)
        assert rounds.get(connection, workbench.name, 1).state == "closed"

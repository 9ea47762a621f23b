"""Kill a cycle between what a label provider was told and what opmon noted: nothing is asked or counted twice."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from opmon.store import queue, rounds

KILLED = """
import os, signal, sys
from opmon.monitor import Monitor
from opmon.stages import labelling

path, module, name = sys.argv[1:]
begun = getattr(getattr(labelling, module), name)

def last_words(*args, **kwargs):
    if name == "record_possible":
        begun(*args, **kwargs)  # in a transaction that never ends
    os.kill(os.getpid(), signal.SIGKILL)

setattr(getattr(labelling, module), name, last_words)
Monitor.from_yaml(path).advance()
"""


def cycle_killed_at(config: Path, module: str, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(config), module, name],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


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

"""How long Label Studio takes, on loopback and SQLite.

``python plugins/opmon-label-studio/tests/benchmark.py [TASKS]``

A project with TASKS tasks (20,000), one in five of them answered: what it costs to hand 1,000 more over, to hand them
over again, to poll all answers and those since the last poll, and to ask which of 1,000 tasks are still there.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from opmon_label_studio.provider import LabelStudio
from real_studio import TOKEN, Studio, environment

from opmon.types import Guide, Task

GUIDE = Guide(classes={"cat": "of any age", "dog": ""})
PART = {"from_name": "answer", "to_name": "row", "type": "choices", "value": {"choices": ["cat"]}}


def main(there: int = 20_000) -> None:
    """Print what each took."""
    with timed("the environment with Label Studio, made or found"):
        made = environment()
    with tempfile.TemporaryDirectory() as folder, running(made, Path(folder) / "data") as studio:
        provider = LabelStudio(studio.url, TOKEN).bind("many", GUIDE)
        provider.push([task(1)])
        project = studio.project("opmon: many")
        assert project is not None
        with timed(f"{there:,} tasks imported by hand, one in five answered"):
            for start in range(2, there + 2, 1000):
                studio.call(
                    "POST", f"/api/projects/{project['id']}/import", [form(k) for k in range(start, start + 1000)]
                )
        new = [task(k) for k in range(there + 2, there + 1002)]
        for what in ("1,000 new tasks handed over", "the same handed over again"):
            with timed(what):
                portions(new, provider.push, provider.batch)
        with sqlite3.connect(studio.folder / "label_studio.sqlite3", timeout=60) as tables:
            tables.execute("UPDATE task SET updated_at = datetime('now', (id - 100000) || ' minutes')")
        tables.close()
        first = provider.pull("")
        with timed(f"all {len(first.said):,} answers polled"):
            provider.pull("")
        studio.answer(project["id"], new[0].key, "dog", "ann@example.com")
        with timed("one answer that is new since the last poll"):
            since = provider.pull(first.cursor)
        assert (new[0].key, "dog") in {(said.task_key, said.truth) for said in since.said}
        with timed("1,000 tasks looked for"):
            held = provider.reconcile({each.key for each in new})
        total = studio.call("GET", f"/api/projects/{project['id']}/")["task_number"]
        print(f"{len(held):,} of them are there; the project has {total:,} tasks, {there + 1001:,} were handed over")


def task(number: int) -> Task:
    return Task(number, "many", 1, f"i{number}", {"age": number}, key(number), ("cat", "dog"))


def key(number: int) -> str:
    return f"t{number}-0123456789ab"


def form(number: int) -> dict[str, object]:
    data = {"opmon": key(number), "picture": "", "text": "", "lines": "", "row": {"age": number}}
    annotations = [{"result": [PART]}] if number % 5 == 0 else []
    return {"data": data, "meta": {"opmon": {"key": key(number)}}, "annotations": annotations}


def portions(tasks: list[Task], push: Callable[[list[Task]], None], most: int) -> None:
    for start in range(0, len(tasks), most):
        push(tasks[start : start + most])


@contextmanager
def running(made: Path, folder: Path) -> Iterator[Studio]:
    if (made / "tables").exists():
        shutil.copytree(made / "tables", folder)
    studio = Studio(made, folder)
    with timed("Label Studio started"):
        studio.start()
    try:
        yield studio
    finally:
        studio.stop()


@contextmanager
def timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:8.1f} s  {what}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

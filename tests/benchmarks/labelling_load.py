"""How many labels a second the API takes from many annotators at once, and whether each task is given and kept once.

Twenty annotators, each with a connection of their own, take tasks and answer them one by one, as the page does, for so
many seconds. In the end what they were given and what was acknowledged is compared with what the database holds.

The bars: 300 labels a second on PostgreSQL and 100 on SQLite, no task given to two, none lost, no error. ::

    python tests/benchmarks/labelling_load.py --seconds 60
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

import sqlalchemy as sa

from opmon.store.schema import labels
from tests.databases import Kind, kinds
from tests.web.world import World

ANNOTATORS, AHEAD, TASKS_A_ROUND = 20, 8, 1000
BARS = {"postgresql": 300, "sqlite": 100}


@dataclass
class Annotator:
    """Takes tasks and answers them, until told to stop."""

    port: int
    name: str
    until: float
    given: list[str] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def run(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while time.monotonic() < self.until:
            tasks = self.post("/api/v1/monitors/digits/take", {"count": AHEAD})["tasks"]
            self.given += [task["key"] for task in tasks]  # type: ignore[index]
            for task in tasks:  # type: ignore[attr-defined]
                begin = time.perf_counter()
                answer = {"key": task["key"], "truth": "7", "seconds": 1.0, "at": datetime.now(UTC).isoformat()}
                told = self.post("/api/v1/answers", {"answers": [answer]})
                self.waited.append(time.perf_counter() - begin)
                if told.get("recorded") == 1:
                    self.acknowledged.append(task["key"])
                else:
                    self.problems.append(str(told))
            if not tasks:
                self.problems.append("there were no more tasks: the benchmark asks for too few")
                return

    def post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        headers = {"content-type": "application/json", "opmon-annotator": self.name}
        self.connection.request("POST", path, json.dumps(body), headers)
        answer = self.connection.getresponse()
        told: dict[str, object] = json.loads(answer.read())
        if answer.status != 200:
            self.problems.append(f"{answer.status}: {told}")
            return {"tasks": []}
        return told


def serve(database: str, folder: str, count: int, pipe: Connection) -> None:
    """The server, in a process of its own, with ``count`` tasks to label."""
    world = World.of(database, Path(folder))
    for _ in range(-(-count // TASKS_A_ROUND)):
        world.ask("digits", [{"pixels": [0.5] * 64}] * TASKS_A_ROUND)
    with world.served() as server:
        pipe.send(server.address[1])
        begin = time.process_time()
        pipe.recv()
        pipe.send(time.process_time() - begin)


def measure(kind: Kind, folder: Path, seconds: float) -> bool:
    database = kind.new()
    here, there = multiprocessing.get_context("spawn").Pipe()
    count = int(seconds * 4 * BARS[kind.name])
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(database, str(folder), count, there))
    process.start()
    port = here.recv()
    begin, own, servers = time.monotonic(), time.process_time(), kind.busy()
    annotators = [Annotator(port, f"ann {k}", begin + seconds) for k in range(ANNOTATORS)]
    threads = [threading.Thread(target=each.run) for each in annotators]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begin
    here.send("stop")
    worked = {"opmon": here.recv(), "the database's server": kind.busy() - servers, "the annotators' own": 0.0}
    worked["the annotators' own"] = time.process_time() - own
    process.join()
    return report(kind.name, database, annotators, took, worked)


def report(kind: str, database: str, annotators: list[Annotator], took: float, worked: dict[str, float]) -> bool:
    acknowledged = [key for each in annotators for key in each.acknowledged]
    given = Counter(key for each in annotators for key in set(each.given))
    waited = sorted(wait for each in annotators for wait in each.waited)
    engine = sa.create_engine(database)
    with engine.connect() as connection:
        kept = Counter(connection.scalars(sa.select(labels.c.task_id)))
    engine.dispose()
    numbers = {int(key[1:].split("-")[0]) for key in acknowledged}
    rate = len(acknowledged) / took
    twice, lost = sum(count > 1 for count in given.values()), len(numbers - set(kept))
    doubled = sum(count > 1 for count in kept.values())
    problems = [problem for each in annotators for problem in each.problems]
    shares = ", ".join(f"{who} {1000 * seconds / len(waited):.2f} ms" for who, seconds in worked.items())
    print(
        f"{kind}: {len(acknowledged):,} labels of {ANNOTATORS} annotators in {took:.1f} s: {rate:.0f} a second (bar: "
        f"{BARS[kind]}); an answer took {1000 * statistics.median(waited):.0f} ms, the slowest of a hundred "
        f"{1000 * waited[int(0.99 * len(waited))]:.0f} ms; {twice} given to two, {doubled} labelled twice, "
        f"{lost} lost, {len(problems)} errors; processors worked for a label: {shares}"
    )
    for problem in problems[:3]:
        print(f"  {problem[:300]}")
    return rate >= BARS[kind] and not (twice or lost or doubled or problems)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", choices=list(BARS))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        good = [measure(kind, Path(folder), asked.seconds) for kind in kinds(Path(folder), asked.only)]
    raise SystemExit(0 if all(good) else 1)


if __name__ == "__main__":
    main()

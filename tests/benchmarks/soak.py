"""Two workers on one PostgreSQL, for long, while one is killed and the other stopped: is anything lost or doubled?

    pip install -e plugins/opmon-example
    python tests/benchmarks/soak.py --monitors 200 --period 10 --minutes 20

Every ``--kill-every`` seconds one worker is killed and another started; the other is stopped for ``--stop-for``
seconds every ``--stop-every``. Inputs keep coming into the log of each monitor, with their truth, so that rounds open
and close.
In the end every input must be in one round and every round closed; no monitor may have waited more than three periods
longer than one, the worker that was never killed may not grow, and all connections to the database are counted.
Figures and a verdict for each bar are printed, and a line a minute on the way; it exits 1 where a bar fails. A signal
ends it early, with what was seen until then. What the processors were asked for is printed too: on a machine that is
busy with other things, times say little.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
import yaml

from opmon.store.engine import open_store
from tests.databases import postgres_server

INPUTS = 20
"""Inputs of one file, which are a round."""


def configuration(database: str, monitors: int, period: float) -> dict[str, object]:
    one = {
        "model": "models:/net/1",
        "problem": "classification",
        "classes": ["0", "1"],
        "scoring": {"by": "logged"},
        "columns": {"id": "id", "prediction": "said", "timestamp": "at"},
        "truth": {"column": "truth"},
        "round": {"min_inputs": INPUTS, "max_inputs": INPUTS, "max_age": "30d"},
        "sampler": {"type": "srs", "budget": 5},
        "drift": {"enabled": False},
        "actions": [],
        "schedule": {"every": f"{period:g}s"},
    }
    named = {
        f"m{k:03}": {**one, "source": {"path": f"production/m{k:03}", "settle_seconds": 0.1}} for k in range(monitors)
    }
    return {
        "registry": {"type": "folder", "path": "models"},
        "database": database,
        "web": {"enabled": False},
        "metrics": {"enabled": False},
        "monitors": named,
    }


@dataclass
class World:
    """The folder with the log, and the workers."""

    folder: Path
    database: str
    monitors: int
    written: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    kills: int = 0
    stops: int = 0
    wrong: bool = False
    """Whether the truth is never what the model said."""

    def begin(self, period: float) -> None:
        (self.folder / "models" / "net" / "1").mkdir(parents=True)
        (self.folder / "models" / "net" / "1" / "model.onnx").write_bytes(b"nobody loads it")
        (self.folder / "opmon.yaml").write_text(yaml.safe_dump(configuration(self.database, self.monitors, period)))
        for k in range(self.monitors):
            (self.folder / "production" / f"m{k:03}").mkdir(parents=True)
        for _ in range(2):
            self.workers.append(self.worker())

    def worker(self) -> subprocess.Popen[bytes]:
        with (self.folder / f"worker-{time.monotonic_ns()}.log").open("wb") as log:
            command = [sys.executable, "-m", "opmon", "serve", "--role", "worker"]
            return subprocess.Popen(command, cwd=self.folder, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def write(self, name: str) -> None:
        """Another file of the log of a monitor."""
        number = self.written[name]
        self.written[name] += 1
        said = [str(k % 2) for k in range(INPUTS)]
        ids = [f"{name}-{number}-{k}" for k in range(INPUTS)]
        at = pa.array([int(time.time() * 1e6)] * INPUTS, pa.timestamp("us", "UTC"))
        truth = [str(1 - k % 2) for k in range(INPUTS)] if self.wrong else said
        table = pa.table({"id": ids, "said": said, "truth": truth, "at": at})
        path = self.folder / "production" / name / f"{number:05}.parquet"
        pq.write_table(table, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)

    def kill(self) -> None:
        """The second worker dies, and another takes its place."""
        self.workers[1].kill()
        self.workers[1].wait()
        self.workers[1] = self.worker()
        self.kills += 1

    def end(self) -> list[int | None]:
        codes: list[int | None] = []
        for worker in self.workers:
            worker.send_signal(signal.SIGCONT)
        time.sleep(2)  # one that was stopped finds out what it lost
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self.workers:
            with suppress(subprocess.TimeoutExpired):
                worker.wait(12)
            codes.append(worker.poll())
            worker.kill()
        return codes


@dataclass
class Watch:
    """What is seen of the database and of the worker that lives throughout."""

    engine: sa.Engine
    process: psutil.Process
    begun: dict[str, object] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    longest: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    connections: int = 0
    memory: list[tuple[float, float]] = field(default_factory=list)

    def look(self) -> None:
        now = time.monotonic()
        with self.engine.connect() as connection:
            count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'opmon'"
            self.connections = max(self.connections, connection.scalar(sa.text(count)) or 0)
            ticks = dict(connection.execute(sa.text("SELECT monitor, at FROM ticks")).all())
        for name, at in ticks.items():
            if name in self.since:
                self.longest[name] = max(self.longest[name], now - self.since[name])
            if self.begun.get(name) != at:
                self.begun[name], self.since[name] = at, now
        self.memory.append((now, self.process.memory_info().rss / 1e6))

    def slope(self) -> float:
        """MB an hour, over the second half of what was seen."""
        half = np.array(self.memory[len(self.memory) // 2 :])
        return float(np.polyfit(half[:, 0] - half[0, 0], half[:, 1], 1)[0] * 3600) if len(half) > 2 else float("nan")


def accounts(engine: sa.Engine, written: dict[str, int]) -> dict[str, int]:
    """What is in the books that should not be, and what is not there."""
    with engine.connect() as connection:
        rows = connection.execute(
            sa.text("SELECT monitor, number, state, received, inputs FROM rounds ORDER BY monitor, number")
        ).all()
        twice = connection.scalar(
            sa.text(
                "SELECT count(*) FROM (SELECT 1 FROM slices GROUP BY monitor, part, start HAVING count(*) > 1) AS x"
            )
        )
    by_monitor = defaultdict(list)
    for row in rows:
        by_monitor[row.monitor].append(row)
    wanted = {name: count for name, count in written.items() if count}
    return {
        "rounds": len(rows),
        "inputs_written": INPUTS * sum(wanted.values()),
        "inputs_in_rounds": sum(row.received for row in rows),
        "rounds_lost": sum(max(0, count - len(by_monitor[name])) for name, count in wanted.items()),
        "rounds_doubled": sum(max(0, len(by_monitor[name]) - count) for name, count in wanted.items()),
        "slices_doubled": int(twice or 0),
        "rounds_open": sum(row.state != "closed" for row in rows),
        "gaps_in_numbers": sum([r.number for r in own] != list(range(1, len(own) + 1)) for own in by_monitor.values()),
    }


def soak(arguments: argparse.Namespace, folder: Path, database: str) -> dict[str, object]:
    world = World(folder, database, arguments.monitors)
    open_store(database).close()
    world.begin(arguments.period)
    try:
        return _soaked(arguments, world, database)
    finally:
        world.end()


def _soaked(arguments: argparse.Namespace, world: World, database: str) -> dict[str, object]:
    engine = sa.create_engine(database, connect_args={"application_name": "soak"}, pool_size=1)
    start = _warmed_up(arguments, engine)
    watch = Watch(engine, psutil.Process(world.workers[0].pid))
    begun = time.monotonic()
    with suppress(KeyboardInterrupt):
        _trouble(arguments, world, watch)
    minutes = (time.monotonic() - begun) / 60
    world.workers[0].send_signal(signal.SIGCONT)
    deadline = time.monotonic() + arguments.drain
    found = accounts(engine, world.written)
    while time.monotonic() < deadline and (found["rounds_open"] or found["rounds_lost"]):
        time.sleep(1)
        found = accounts(engine, world.written)
    cpu = watch.process.cpu_times()
    codes = world.end()
    engine.dispose()
    gaps = sorted(watch.longest.values())
    return {
        **found,
        "minutes": round(minutes, 1),
        "start_seconds": round(start, 1),
        "kills": world.kills,
        "stops": world.stops,
        "monitors_begun": len(watch.begun),
        "longest_wait_seconds": round(gaps[-1], 1),
        "median_longest_wait_seconds": round(gaps[len(gaps) // 2], 1),
        "waits_above_four_periods": sum(gap > 4 * arguments.period for gap in gaps),
        "connections": watch.connections,
        "memory_mb": round(watch.memory[-1][1]),
        "memory_slope_mb_per_hour": round(watch.slope(), 1),
        "first_worker_cpu_seconds": round(cpu.user + cpu.system, 1),
        "load": round(os.getloadavg()[0], 1),
        "exit_codes": codes,
    }


def verdicts(arguments: argparse.Namespace, found: Mapping[str, Any]) -> dict[str, bool]:
    """Which bars hold."""
    wrong = ("rounds_lost", "rounds_doubled", "slices_doubled", "rounds_open", "gaps_in_numbers")
    return {
        "the whole time": found["minutes"] >= arguments.minutes,
        "no round lost or doubled": not any(found[name] for name in wrong)
        and found["inputs_in_rounds"] == found["inputs_written"] > 0,
        "no period missed by more than three": found["monitors_begun"] == arguments.monitors
        and found["waits_above_four_periods"] == 0,
        "memory grows by less than 5 MB/h": found["memory_slope_mb_per_hour"] < 5,
        "at most 20 connections": found["connections"] <= 20,
        "workers end in order": found["exit_codes"] == [0, 0],
    }


def _warmed_up(arguments: argparse.Namespace, engine: sa.Engine) -> float:
    """Wait for the first cycle of every monitor; gives how long the first of them took."""
    begun, start = time.monotonic(), None
    while time.monotonic() < begun + arguments.warm_up and (count := _begun(engine)) < arguments.monitors:
        start = time.monotonic() - begun if start is None and count else start
        time.sleep(0.5)
    return start or time.monotonic() - begun


def _trouble(arguments: argparse.Namespace, world: World, watch: Watch) -> None:
    """Inputs come, one worker is killed again and again, the other stopped."""
    started, names = time.monotonic(), [f"m{k:03}" for k in range(arguments.monitors)]
    next_kill, next_stop, until_stop, files, told = arguments.kill_every, arguments.stop_every, None, 0, 0
    while (passed := time.monotonic() - started) < 60 * arguments.minutes:
        due = int(passed / arguments.inputs_every * len(names))
        for number in range(files, due):
            world.write(names[number % len(names)])
        files = max(files, due)
        if passed >= next_kill:
            world.kill()
            next_kill += arguments.kill_every
        if until_stop is not None and passed >= until_stop:
            world.workers[0].send_signal(signal.SIGCONT)
            until_stop = None
        elif until_stop is None and passed >= next_stop:
            world.workers[0].send_signal(signal.SIGSTOP)
            world.stops += 1
            until_stop, next_stop = passed + arguments.stop_for, passed + arguments.stop_for + arguments.stop_every
        watch.look()
        if passed >= 60 * (told + 1):
            told += 1
            longest, memory = max(watch.longest.values(), default=0.0), watch.memory[-1][1]
            line = f"{told} min: longest wait {longest:.0f} s, {watch.connections} connections, {memory:.0f} MB"
            print(line, file=sys.stderr, flush=True)
        time.sleep(0.5)


def _begun(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        return connection.scalar(sa.text("SELECT count(*) FROM cycles")) or 0


def arguments_of(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--monitors", type=int, default=200)
    parser.add_argument("--period", type=float, default=10.0, help="seconds")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--inputs-every", type=float, default=120.0, help="seconds between files of one monitor")
    parser.add_argument("--kill-every", type=float, default=60.0)
    parser.add_argument("--stop-every", type=float, default=180.0)
    parser.add_argument("--stop-for", type=float, default=120.0)
    parser.add_argument(
        "--warm-up",
        type=float,
        default=180.0,
        help="seconds that the first cycles may take",
    )
    parser.add_argument("--drain", type=float, default=180.0, help="seconds that the last rounds may take")
    return parser.parse_args(given)


def main() -> None:
    arguments = arguments_of()
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    with (
        tempfile.TemporaryDirectory(prefix="opmon-soak-") as folder,
        postgres_server(Path(folder) / "postgres") as server,
    ):
        (Path(folder) / "opmon").mkdir()
        found = soak(arguments, Path(folder) / "opmon", server.new())
    held = verdicts(arguments, found)
    print(json.dumps({**found, "bars": held}, indent=1))
    sys.exit(0 if all(held.values()) else 1)


if __name__ == "__main__":
    main()

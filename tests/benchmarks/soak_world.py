"""The world of a soak: monitors of a worker without MLflow, their logs, the workers, and what is seen of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
import yaml

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


_MARKS = 5
"""The fewest rests that tell whether what is held at rest grows."""


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
    at_rest: list[tuple[float, float]] = field(default_factory=list)

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

    def rested(self, seconds: float) -> None:
        """A rest ends: what the worker held at the least in its last seconds is what it keeps."""
        now = time.monotonic()
        self.at_rest.append((now, min(size for at, size in self.memory if at > now - seconds)))

    def growth(self) -> tuple[float, float]:
        """MB an hour by which what is held at rest grows after the first quarter of the time, and the standard error.

        In between it goes up and down with the rounds at work, which says nothing of what is kept.
        """
        times, sizes = np.array(self.at_rest).reshape(-1, 2).T
        if len(times) < _MARKS:
            return float("nan"), float("nan")
        late = times >= self.memory[0][0] + (self.memory[-1][0] - self.memory[0][0]) / 4
        hours, least = (times[late] - times[late].mean()) / 3600, sizes[late]
        slope = float(hours @ least / (hours @ hours))
        left = least - least.mean() - slope * hours
        return slope, float(np.sqrt(left @ left / (late.sum() - 2) / (hours @ hours)))


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

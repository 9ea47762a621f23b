"""Workers on one database, each known to PostgreSQL by its name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa
import yaml

from opmon.store.engine import open_store
from tests.benchmarks.soak_world import configuration


@dataclass
class Crew:
    """Some workers on one database, which PostgreSQL knows by their names."""

    folder: Path
    database: str
    monitors: int
    period: float
    environment: Mapping[str, str] = field(default_factory=dict)
    slow: bool = False
    """Whether each delivery takes long: so a worker is at a monitor, and holds its lease, most of the time."""
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        open_store(self.database).close()
        (self.folder / "models" / "net" / "1").mkdir(parents=True)
        (self.folder / "models" / "net" / "1" / "model.onnx").write_bytes(b"nobody loads it")
        plain = configuration(self.database, self.monitors, self.period)
        monitors = plain["monitors"]
        assert isinstance(monitors, dict)
        for name in monitors:
            (self.folder / "production" / name).mkdir(parents=True)
            if self.slow:
                hook = {"type": "command", "argv": ["sleep", "50"], "on": ["opmon.alarm"]}
                monitors[name] |= {"actions": [hook], "rules": [{"type": "accuracy_level", "threshold": 0.99}]}
        (self.folder / "opmon.yaml").write_text(yaml.safe_dump(plain))
        self.engine = sa.create_engine(self.database, poolclass=sa.pool.NullPool)

    def begin(self, name: str, before: Sequence[str] = ()) -> None:
        """Start a worker; ``before`` is put before its command."""
        address = sa.engine.make_url(self.database).update_query_dict({"application_name": name})
        known = {**os.environ, "OMP_NUM_THREADS": "1", **self.environment}
        known["OPMON_DATABASE"] = address.render_as_string(hide_password=False)
        command = [*before, sys.executable, "-m", "opmon", "serve", "--role", "worker", "--log-format", "text"]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.workers[name] = subprocess.Popen(command, cwd=self.folder, stderr=log, env=known)

    def ask(self, query: str, **given: object) -> list[tuple[object, ...]]:
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query), given)]

    def counts(self) -> dict[str, int]:
        """How many cycles of each monitor ended."""
        return {str(row[0]): int(str(row[1])) for row in self.ask("SELECT monitor, count FROM cycles")}

    def begun(self) -> dict[str, object]:
        """When each monitor was last begun."""
        return {str(row[0]): row[1] for row in self.ask("SELECT monitor, at FROM ticks")}

    def all_begun(self, seconds: float) -> float:
        """Wait until a cycle of every monitor has ended; gives how long that took."""
        begun = time.monotonic()
        while len(self.counts()) < self.monitors:
            if time.monotonic() > begun + seconds:
                raise SystemExit(f"only {len(self.counts())} of {self.monitors} monitors began in {seconds:g} s")
            time.sleep(0.5)
        return time.monotonic() - begun

    def end(self) -> None:
        for worker in self.workers.values():
            with suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
                worker.send_signal(signal.SIGTERM)
        for worker in self.workers.values():
            with suppress(subprocess.TimeoutExpired):
                worker.wait(15)
            worker.kill()
            worker.wait()
        self.engine.dispose()


@contextmanager
def crew(made: Crew) -> Iterator[Crew]:
    try:
        yield made
    finally:
        made.end()

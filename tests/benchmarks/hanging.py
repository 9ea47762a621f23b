"""One monitor of a worker hangs: how much later do the rounds of the others close?

    pip install -e plugins/opmon-example -e plugins/opmon-label-studio
    python tests/benchmarks/hanging.py --seconds 40

Two workers run side by side, each on a database of its own, with the same monitors, to which the same inputs come at
the same moments. At one of them a further monitor hangs; at the other it does not. What is compared is how long after
their inputs came the rounds of the other monitors closed: the bar is 1.2. What hangs is real: a socket that takes
connections and says nothing, or a byte a second; a command that sleeps; a model that computes without end. In the end
the worker is told to stop, which takes 10 s at most, and what it said of the monitor that hangs is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
import yaml

from opmon.store.engine import open_store
from tests.benchmarks.hanging_kinds import KINDS, Silent
from tests.benchmarks.soak_world import INPUTS, configuration
from tests.databases import postgres_server

HUNG = "hung"
BAR, STOP_SECONDS = 1.2, 10.0


@dataclass
class Side:
    """One worker with its monitors."""

    folder: Path
    database: str
    names: list[str]
    written: dict[str, list[datetime]] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def begin(self, own: Mapping[str, object], environment: Mapping[str, str]) -> None:
        open_store(self.database).close()
        plain = configuration(self.database, len(self.names), 1.0)
        monitors = plain["monitors"]
        assert isinstance(monitors, dict)
        monitors[HUNG] = {**monitors["m000"], "source": {"path": f"production/{HUNG}", "settle_seconds": 0.1}, **own}
        plain["metrics"] = {"listen": f"127.0.0.1:{self.port}"}
        (self.folder / "models" / "net" / "1").mkdir(parents=True)
        (self.folder / "models" / "net" / "1" / "model.onnx").write_bytes(b"nobody loads it")
        (self.folder / "opmon.yaml").write_text(yaml.safe_dump(plain))
        for name in (*self.names, HUNG):
            (self.folder / "production" / name).mkdir(parents=True)
        with (self.folder / "worker.log").open("wb") as log:
            command = [sys.executable, "-m", "opmon", "serve", "--role", "worker", "--log-format", "text"]
            known = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(self.folder), **environment}
            self.process = subprocess.Popen(command, cwd=self.folder, stderr=log, env=known)

    def __post_init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def write(self, number: int) -> None:
        """Inputs for every monitor: right ones, but for those of the monitor that hangs, which raise its alarm."""
        for name in (*self.names, HUNG):
            said = [str(k % 2) for k in range(INPUTS)]
            truth = said if name != HUNG else [str(1 - k % 2) for k in range(INPUTS)]
            ids = [f"{name}-{number}-{k}" for k in range(INPUTS)]
            at = pa.array([int(time.time() * 1e6)] * INPUTS, pa.timestamp("us", "UTC"))
            table = pa.table({"id": ids, "said": said, "truth": truth, "at": at, "x": np.arange(INPUTS) / INPUTS})
            path = self.folder / "production" / name / f"{number:05}.parquet"
            pq.write_table(table, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").rename(path)
            self.written.setdefault(name, []).append(datetime.now(UTC))

    def closed(self) -> dict[tuple[str, int], float]:
        """How many seconds after its inputs came each round of the other monitors closed."""
        engine = sa.create_engine(self.database, poolclass=sa.pool.NullPool)
        with engine.connect() as connection:
            rows = connection.execute(sa.text("SELECT monitor, number, closed_at FROM rounds WHERE state = 'closed'"))
            return {
                (row.monitor, row.number): (row.closed_at - self.written[row.monitor][row.number - 1]).total_seconds()
                for row in rows
                if row.monitor != HUNG
            }

    def told(self) -> dict[str, object]:
        """What its probe says."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=30) as answer:
                return dict(json.load(answer))
        except OSError as exc:
            return {"error": str(exc)}

    def status(self) -> list[str]:
        """What ``opmon status`` says is needed."""
        command = [sys.executable, "-m", "opmon", "status", "-m", HUNG, "--json"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=120, check=False)
        return [
            need["message"] for need in json.loads(done.stdout or "{}").get("needs", []) if need["kind"] != "labels"
        ]

    def end(self) -> float:
        """Stop it; gives how long that took."""
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self.process.kill()
        return time.monotonic() - begun


def measure(kind: str, arguments: argparse.Namespace, folder: Path, new: Callable[[], str]) -> dict[str, object]:
    """Both workers for a while; gives how much later rounds close where a monitor hangs."""
    silent, names = Silent(drips="drips" in kind), [f"m{k:03}" for k in range(arguments.monitors)]
    sides = [Side(folder / side, new(), names) for side in ("well", "hangs")]
    stores = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.port}", "AWS_REGION": "x", "AWS_ACCESS_KEY_ID": "a"}
    for side in sides:
        side.folder.mkdir(parents=True)
    sides[0].begin({}, {})
    sides[1].begin(KINDS[kind](silent, sides[1].folder), {**stores, "AWS_SECRET_ACCESS_KEY": "b"})
    try:
        while min(_cycles(side) for side in sides) < arguments.monitors:
            time.sleep(0.5)
        begun, number = time.monotonic(), 0
        while time.monotonic() < begun + arguments.seconds:
            for side in sides if number % 2 else reversed(sides):
                side.write(number)
            number += 1
            time.sleep(max(0.0, begun + number * arguments.every - time.monotonic()))
        until = time.monotonic() + arguments.drain
        while min(len(side.closed()) for side in sides) < number * len(names) and time.monotonic() < until:
            time.sleep(1)
        well, hangs = (side.closed() for side in sides)
        healthz, status = sides[1].told(), sides[1].status()
    finally:
        stopped = [side.end() for side in sides]
    both = sorted(set(well) & set(hangs))
    ratio = float(np.median([hangs[key] for key in both]) / np.median([well[key] for key in both]))
    return {
        "kind": kind,
        "rounds": len(both),
        "rounds_missing": number * len(names) - len(both),
        "seconds_well": round(float(np.median([well[key] for key in both])), 2),
        "seconds_hanging": round(float(np.median([hangs[key] for key in both])), 2),
        "ratio_of_medians": round(ratio, 2),
        "ratio_of_means": round(float(np.mean([hangs[key] for key in both]) / np.mean([well[key] for key in both])), 2),
        "holds": ratio <= BAR and stopped[1] <= STOP_SECONDS and len(both) == number * len(names),
        "stop_seconds": round(stopped[1], 1),
        "healthz": healthz,
        "status": status,
        "load": round(os.getloadavg()[0], 1),
    }


def _cycles(side: Side) -> int:
    if side.process is None or side.process.poll() is not None:
        raise SystemExit((side.folder / "worker.log").read_text())
    engine = sa.create_engine(side.database, poolclass=sa.pool.NullPool)
    with engine.connect() as connection:
        return connection.scalar(sa.text("SELECT count(*) FROM cycles WHERE monitor <> 'hung'")) or 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--monitors", type=int, default=8, help="those that do not hang")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long inputs come")
    parser.add_argument("--every", type=float, default=6.0, help="seconds between the inputs of a monitor")
    parser.add_argument("--drain", type=float, default=120.0, help="seconds that the last rounds may take")
    parser.add_argument("--kind", help="only the kinds whose names have this in them")
    arguments = parser.parse_args()
    verdicts = []
    with (
        tempfile.TemporaryDirectory(prefix="opmon-hanging-") as folder,
        postgres_server(Path(folder) / "postgres") as server,
    ):
        for number, kind in enumerate(KINDS):
            if arguments.kind is None or arguments.kind in kind:
                found = measure(kind, arguments, Path(folder) / str(number), server.new)
                print(json.dumps(found), flush=True)
                verdicts.append(bool(found["holds"]))
    print(json.dumps({"kinds": len(verdicts), "hold": sum(verdicts), "bar": BAR}))
    sys.exit(0 if all(verdicts) else 1)


if __name__ == "__main__":
    main()

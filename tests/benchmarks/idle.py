"""What a worker takes that has nothing to do: until it is ready, and from then on.

    pip install -e plugins/opmon-example
    python tests/benchmarks/idle.py --monitors 200 --seconds 60

Bars: ready in 6 s, 350 MB, 2 % of a core. On a machine that is busy with other things the seconds of processor time
tell more than those of the clock: both are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil
import yaml

from opmon.store.engine import open_store
from tests.benchmarks.soak_world import configuration
from tests.databases import postgres_server

_PORT = re.compile(r"metrics at http://127\.0\.0\.1:(\d+)/metrics")


def measure(folder: Path, database: str, monitors: int, seconds: float) -> dict[str, float]:
    """Start a worker whose logs are empty, and look at it."""
    open_store(database).close()
    plain = configuration(database, monitors, 600.0) | {"metrics": {"listen": "127.0.0.1:0"}}
    (folder / "opmon.yaml").write_text(yaml.safe_dump(plain))
    (folder / "models" / "net" / "1").mkdir(parents=True)
    (folder / "models" / "net" / "1" / "model.onnx").write_bytes(b"nobody loads it")
    for k in range(monitors):
        (folder / "production" / f"m{k:03}").mkdir(parents=True)
    log, begun = folder / "worker.log", time.monotonic()
    with log.open("wb") as said:
        command = [sys.executable, "-m", "opmon", "serve", "--role", "worker", "--log-format", "text"]
        process = subprocess.Popen(command, cwd=folder, stderr=said, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        port = _listening(log, process)
        of_process = psutil.Process(process.pid)
        ready, at_ready = time.monotonic() - begun, _busy(of_process)
        while _cycles(port) < monitors:
            time.sleep(1)
        time.sleep(10)
        before, since = _busy(of_process), time.monotonic()
        time.sleep(seconds)
        idle = (_busy(of_process) - before) / (time.monotonic() - since)
        return {
            "ready_seconds": round(ready, 1),
            "ready_cpu_seconds": round(at_ready, 1),
            "memory_mb": round(of_process.memory_info().rss / 1e6),
            "idle_cpu_per_cent": round(100 * idle, 2),
            "connections": len(of_process.net_connections("unix")),
            "load": round(os.getloadavg()[0], 1),
        }
    finally:
        process.terminate()
        process.wait(30)


def _listening(log: Path, process: subprocess.Popen[bytes]) -> int:
    while process.poll() is None:
        said = log.read_text()
        found = _PORT.search(said)
        if found is not None and "watching" in said:
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/healthz", timeout=30) as answer:
                assert answer.status == 200
            return int(found[1])
        time.sleep(0.02)
    raise SystemExit(log.read_text())


def _cycles(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return answer.read().decode().count("\nopmon_cycle_last_duration_seconds{")


def _busy(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--monitors", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="opmon-idle-") as folder,
        postgres_server(Path(folder) / "postgres") as server,
    ):
        (Path(folder) / "opmon").mkdir()
        found = measure(Path(folder) / "opmon", server.new(), arguments.monitors, arguments.seconds)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

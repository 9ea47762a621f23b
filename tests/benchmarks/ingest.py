"""How much opmon's endpoint takes in a second, and whether what it acknowledged is there once after a SIGKILL.

A process sends pairs of requests and responses as KServe does, an event in each HTTP request, over connections that are
kept. In the middle ``opmon ingest`` is killed and started again; what was not acknowledged is sent again. In the end
the rows that its source reads are compared with what was acknowledged: each pair is one row, with its prediction.

The bar: 2,000 events a second for 60 s on loopback and two cores, every acknowledged event exactly once. ::

    python tests/benchmarks/ingest.py --seconds 60
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from opmon.sources.ingest import Ingest

CONNECTIONS, FEATURES = 32, 20
VALUES = json.dumps({"instances": [[round(0.01 * number, 2) for number in range(FEATURES)]]}).encode()
ANSWER = b'{"predictions": ["good"]}'
CONFIGURATION = """
ingest: {{listen: 127.0.0.1:{port}, every: 4s, settle: 2s}}
monitors:
  digits:
    model: models:/digits/1
    source: {{type: ingest}}
"""


@dataclass
class Sender:
    """Sends events at a pace over connections that are kept, each until it is acknowledged."""

    port: int
    rate: float
    seconds: float
    taken: int = 0
    again: int = 0
    waited: list[float] = field(default_factory=list)

    async def run(self) -> None:
        events = iter(range(int(self.rate * self.seconds)))
        self.begin = time.perf_counter()
        await asyncio.gather(*(self._send(events) for _ in range(CONNECTIONS)))
        self.took = time.perf_counter() - self.begin

    async def _send(self, events: Iterator[int]) -> None:
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        for number in events:
            due = self.begin + number / self.rate
            if (pause := due - time.perf_counter()) > 0:
                await asyncio.sleep(pause)
            start, message = time.perf_counter(), _message(number)
            while True:
                try:
                    if connection is None:
                        connection = await asyncio.open_connection("127.0.0.1", self.port)
                    if await _acknowledged(*connection, message):
                        break
                except (OSError, asyncio.IncompleteReadError):
                    connection = None
                self.again += 1
                await asyncio.sleep(0.05)
            self.taken += 1
            self.waited.append(time.perf_counter() - start)
        if connection is not None:
            connection[1].close()


def _message(number: int) -> bytes:
    kind, body = ("request", VALUES) if number % 2 == 0 else ("response", ANSWER)
    return (
        b"POST /v1/ingest/digits HTTP/1.1\r\nhost: opmon\r\ncontent-type: application/json\r\nce-specversion: 1.0\r\n"
        b"ce-source: http://localhost:9081/\r\nce-type: org.kubeflow.serving.inference.%s\r\nce-id: pair-%d\r\n"
        b"content-length: %d\r\n\r\n%s" % (kind.encode(), number // 2, len(body), body)
    )


async def _acknowledged(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes) -> bool:
    writer.write(message)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(length)
    return head.startswith(b"HTTP/1.1 200")


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """An endpoint at work in a process of its own."""
    process = subprocess.Popen([sys.executable, "-m", "opmon", "-q", "ingest"], cwd=folder)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return process
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the endpoint does not listen")


def drive(port: int, rate: float, seconds: float, told: multiprocessing.Queue[dict[str, float]]) -> None:
    sender = Sender(port, rate, seconds)
    asyncio.run(sender.run())
    waited = sorted(sender.waited)
    told.put(
        {
            "taken": sender.taken,
            "again": sender.again,
            "took": sender.took,
            "p50": waited[len(waited) // 2],
            "p99": waited[int(0.99 * len(waited))],
            "worst": waited[-1],
        }
    )


def measured(folder: Path, rate: float, seconds: float, kill: bool = True) -> tuple[dict[str, float], Counter[str]]:
    """What the sender saw, and how often each pair was read with its prediction."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "opmon.yaml").write_text(CONFIGURATION.format(port=port), encoding="utf-8")
    process = start(folder, port)
    told: multiprocessing.Queue[dict[str, float]] = multiprocessing.Queue()
    sending = multiprocessing.Process(target=drive, args=(port, rate, seconds, told))
    sending.start()
    if kill:
        time.sleep(seconds / 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process = start(folder, port)
    figures = told.get(timeout=seconds + 120)
    sending.join()
    journal = folder / ".opmon" / "ingest" / "@journal"
    for _ in range(1200):
        if not any(path.stat().st_size for path in journal.glob("*.log")):
            break
        time.sleep(0.1)
    figures["cpu"] = _cpu_seconds(process.pid)
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    source = Ingest(str(folder / ".opmon" / "ingest" / "digits" / "inputs"))
    slices = source.pending({})
    figures["lost"] = sum(source.lost(slices).values())
    rows = [row for batch in source.read(slices, ["id", "prediction"]) for row in batch.rows.to_pylist()]
    return figures, Counter(f"{row['id']}: {row['prediction']}" for row in rows)


def _cpu_seconds(pid: int) -> float:
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return float("nan")


def expected(rate: float, seconds: float) -> Counter[str]:
    return Counter({f"pair-{number}: good": 1 for number in range(int(rate * seconds) // 2)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=2000)
    parser.add_argument("--no-kill", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures, rows = measured(Path(folder), asked.rate, asked.seconds, not asked.no_kill)
    wanted = expected(asked.rate, asked.seconds)
    print(
        f"{figures['taken']:,.0f} events in {figures['took']:.1f} s: {figures['taken'] / figures['took']:,.0f} a second"
    )
    print(f"answered within {1000 * figures['p50']:.1f} ms (median), {1000 * figures['p99']:.1f} ms (99 %)", end="")
    print(f", {1000 * figures['worst']:.0f} ms (worst); sent again: {figures['again']:,.0f}")
    print(f"the endpoint (since it was started last) used {figures['cpu']:.1f} s of a core")
    print(f"acknowledged pairs: {sum(wanted.values()):,}; missing: {len(wanted - rows):,}", end="")
    print(f"; more than once, or without their prediction: {sum((rows - wanted).values()):,}")
    if rows != wanted or figures["lost"]:
        raise SystemExit("the bar is missed")


if __name__ == "__main__":
    main()

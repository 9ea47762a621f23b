"""How long record() takes, and whether every record is written or counted, however the process ends.

Prints the bars: the 99th percentile of ``record()`` under 50 µs for 784 floats with a warm buffer; of 100,000 records
from 8 threads, and from 4 forked processes, ``written + dropped = recorded`` after a normal end and after SIGTERM.
After SIGKILL what is missing was recorded in the last ``seconds_per_file`` (here 0.5 s) and while files were written,
which takes longer where all cores are busy; it is never more than the buffer holds (200,000 in each process). Latency
is that of the machine as it is: what copying the numbers takes by itself is printed beside it. ::

    python tests/benchmarks/recorder.py
"""

from __future__ import annotations

import json
import mmap
import multiprocessing
import os
import random
import signal
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import opmon

RECORDS, SECONDS = 100_000, 0.5
VALUES = [random.random() for _ in range(784)]
INPUTS: dict[str, Any] = {
    "list of 784 floats": VALUES,
    "array of 784 floats": np.array(VALUES),
    "20 columns": {f"column_{number}": random.random() for number in range(20)},
}
SMALL = VALUES[:20]


def latency() -> None:
    print(f"record(), microseconds{'p50':>12} {'p99':>8} {'p99.9':>8} {'worst':>9}")
    for name, inputs in INPUTS.items():
        for pace, words in ((0.0005, "2,000 a second"), (0.0, "without a pause")):
            with tempfile.TemporaryDirectory() as folder, opmon.Recorder(folder, seconds_per_file=SECONDS) as recorder:
                for _ in range(2000):
                    recorder.record(inputs, 1)
                recorder.flush()
                show(f"{name}, {words}", [timed(partial(recorder.record, inputs, 1), pace) for _ in range(8000)])
                if isinstance(inputs, list):
                    show(
                        "  struct.pack() alone",
                        [timed(partial(struct.pack, "784d", *inputs), pace) for _ in range(8000)],
                    )


def timed(function: Callable[[], object], pace: float) -> int:
    if pace:
        time.sleep(pace)
    start = time.perf_counter_ns()
    function()
    return time.perf_counter_ns() - start


def show(words: str, took: list[int]) -> None:
    took.sort()
    figures = [took[int(share * len(took))] / 1000 for share in (0.5, 0.99, 0.999)]
    print(f"{words:38}" + " ".join(f"{figure:8.1f}" for figure in (*figures, took[-1] / 1000)))


class Counter:
    """Counts that outlive the processes that count: for each worker how many it recorded, and when it last did."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8 * 8)

    def set(self, place: int, number: int) -> None:
        self._shared[place * 8 : place * 8 + 8] = number.to_bytes(8, "little")

    def total(self) -> int:
        return sum(int.from_bytes(self._shared[at : at + 8], "little") for at in range(0, 64, 8))


def work(recorder: opmon.Recorder, counter: Counter, place: int, most: int) -> None:
    for number in range(1, most + 1):
        recorder.record(SMALL, number)
        counter.set(place, number)


def by_threads(folder: str, counter: Counter, endless: bool) -> None:
    recorder = opmon.Recorder(folder, seconds_per_file=SECONDS)
    most = 10**9 if endless else RECORDS // 8
    threads = [threading.Thread(target=work, args=(recorder, counter, place, most), daemon=True) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_forks(folder: str, counter: Counter, endless: bool) -> None:
    recorder = opmon.Recorder(folder, seconds_per_file=SECONDS)
    children = []
    for place in range(4):
        child = os.fork()
        if not child:
            work(recorder, counter, place, 10**9 if endless else RECORDS // 4)
            sys.exit(0)
        children.append(child)
    signal.signal(signal.SIGTERM, lambda *_: [os.kill(child, signal.SIGTERM) for child in children])
    for child in children:
        os.waitpid(child, 0)


Way = Callable[[str, Counter, bool], None]


def ends() -> None:
    ways: dict[str, Way] = {"8 threads": by_threads, "4 forked processes": by_forks}
    print(f"\n{'':36}{'recorded':>9} {'written':>9} {'dropped':>8} {'missing':>8} {'last 1 s':>9}")
    for name, way in ways.items():
        for end in (None, signal.SIGTERM, signal.SIGKILL):
            with tempfile.TemporaryDirectory() as folder:
                recorded, written, dropped, late = ended(way, folder, end)
            words = f"{name}, {'a normal end' if end is None else end.name}"
            missing = recorded - written - dropped
            print(f"{words:36}{recorded:9,} {written:9,} {dropped:8,} {missing:8,} {late:9,}")


def ended(way: Way, folder: str, end: signal.Signals | None) -> tuple[int, int, int, int]:
    """Recorded, written, dropped, and recorded in the last second, of a process (and its children) that ended so."""
    counter = Counter()
    process = multiprocessing.get_context("fork").Process(target=alone, args=(way, folder, counter, end is not None))
    process.start()
    began, past = time.monotonic(), [0]
    if end is not None:
        while counter.total() < RECORDS or time.monotonic() < began + 3:
            past.append(counter.total())
            time.sleep(0.01)
        os.killpg(process.pid, end) if end is signal.SIGKILL else os.kill(process.pid or 0, end)
    process.join()
    time.sleep(0.1)
    written, dropped = read(Path(folder))
    return counter.total(), written, dropped, counter.total() - past[-100] if len(past) > 100 else 0


def alone(way: Way, folder: str, counter: Counter, endless: bool) -> None:
    os.setpgid(0, 0)
    way(folder, counter, endless)


def read(folder: Path) -> tuple[int, int]:
    """The rows of all files, and what the last file of each writer tells as dropped."""
    files = sorted(folder.glob("*/*.parquet"), key=lambda file: file.name)
    last = {}
    for file in files:
        told = json.loads(pq.read_metadata(file).metadata[b"opmon.recorder"])
        last[told["writer"]] = told["now"]
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    return rows, sum(sum(now["dropped"].values()) for now in last.values())


if __name__ == "__main__":
    latency()
    ends()

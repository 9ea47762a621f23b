"""Time and memory of the samplers on large frames, and of CES on a hidden layer.

    python tests/benchmarks/sampler_speed.py [--largest 10000000] [--draws 1000] [--samplers sups,ssrs] [--json]

Each measurement runs in a process of its own: wall clock of one ``draw``, and the peak of resident memory above what
the frame itself takes (three float32 columns). The slope of log time on log N tells whether cost is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from opmon import plugins
from opmon.types import Frame

SAMPLERS = ("srs", "sups", "rhc", "ssrs", "two_stage", "gbs", "css", "deepest", "adaptive")
LIMITS = {"seconds": 2.0, "megabytes": 400.0, "ces_milliseconds": 60.0}


def main() -> None:
    options = arguments()
    there = [name for name in options.samplers if name in plugins.names("sampler")]
    sizes = [size for size in (100_000, 1_000_000, 10_000_000) if size <= options.largest]
    rows = [alone(measure, name, size, options.draws) for name in there for size in sizes]
    rows += [alone(measure_ces, 10_000, 120, 180)]
    if options.json:
        print("\n".join(json.dumps(row) for row in rows))
        return
    for name in there:
        mine = [row for row in rows if row["sampler"] == name]
        slope = ""
        if len(mine) > 1:
            ends = math.log(mine[-1]["seconds"] / mine[0]["seconds"]) / math.log(mine[-1]["inputs"] / mine[0]["inputs"])
            slope = f"  time grows as N^{ends:.2f}"
        cells = "  ".join(
            f"N={row['inputs']:.0e} {row['seconds']:.3f} s ({row['processor_seconds']:.3f}) {row['megabytes']:.0f} MB"
            for row in mine
        )
        print(f"{name:10} {cells}{slope}")
    ces = rows[-1]
    print(f"ces        N=10000, 120 neurons, n=180, 300 groups: {ces['seconds'] * 1000:.0f} ms")
    print(f"wall clock (processor) and memory; limits: {LIMITS}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=10_000_000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--samplers", type=lambda text: text.split(","), default=list(SAMPLERS))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def alone(function: Any, *given: Any) -> dict[str, Any]:
    """The result of ``function`` in a fresh process, so that its peak of memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        row: dict[str, Any] = pool.apply(function, given)
        return row


def measure(name: str, size: int, draws: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    variables = {key: np.empty(size, dtype=np.float32) for key in ("confidence", "dsa", "lsa")}
    for values, power in zip(variables.values(), (6, 2, 1), strict=True):
        rng.random(out=values, dtype=np.float32)
        np.power(values, power, out=values)
    sampler = plugins.make("sampler", name)
    sampler.draw(Frame({key: values[:5000] for key, values in variables.items()}), 50, rng)  # imports, caches
    frame = Frame(variables)
    before = resident()
    began, working = time.perf_counter(), time.process_time()
    sampler.draw(frame, draws, rng)
    seconds, processor = time.perf_counter() - began, time.process_time() - working
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    used = {"seconds": seconds, "processor_seconds": processor, "megabytes": max(0.0, peak - before)}
    return {"sampler": name, "inputs": size, "draws": draws} | used


def measure_ces(size: int, neurons: int, draws: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    frame = Frame({}, activations=rng.normal(size=(size, neurons)).astype(np.float32))
    sampler = plugins.make("sampler", "ces")
    seconds = []
    for _ in range(7):
        began = time.perf_counter()
        sampler.draw(frame, draws, rng)
        seconds.append(time.perf_counter() - began)
    return {"sampler": "ces", "inputs": size, "draws": draws, "seconds": min(seconds), "megabytes": 0.0}


def resident() -> float:
    """Megabytes of this process now, not its peak."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main()

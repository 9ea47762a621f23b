"""Drift of a round of many inputs: the time it takes, and the most memory, in a process of its own.

    python tests/benchmarks/drift.py [--rows 1000000] [--columns 50] [--page]

A Parquet file of 1 million inputs with 40 columns of numbers and 10 of words is read batch by batch; the rows that a
round would sample (10,000) are kept and compared with as many of a reference, all columns of them. ``--page`` also
writes Evidently's own page. The bar: 20 s and 1 GB, imports included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS, MEGABYTES = 20, 1000
SAMPLED = 10_000


def write(path: Path, rows: int, columns: int, seed: int) -> None:
    """A log, or its reference; every fifth column is words, and every seventh moves."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(seed), None
    for start in range(0, rows, 100_000):
        size = min(100_000, rows - start)
        table = pa.table(
            {
                f"column {k}": pa.array(rng.choice(list("abcdefgh"), size) if k % 5 == 4 else rng.normal(size=size))
                if k % 7 or not seed
                else pa.array(rng.choice(list("aaabcdef"), size) if k % 5 == 4 else rng.normal(0.5, 1, size))
                for k in range(columns)
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def sampled(path: Path, seed: int):  # type: ignore[no-untyped-def]
    """The rows that a round samples, read in batches."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        total = file.metadata.num_rows
        chosen = np.sort(np.random.default_rng(seed).choice(total, min(SAMPLED, total), replace=False))
        kept, first = [], 0
        for batch in file.iter_batches(65_536):
            low, high = np.searchsorted(chosen, [first, first + batch.num_rows])
            kept.append(batch.take(pa.array(chosen[low:high] - first)))
            first += batch.num_rows
    return pa.Table.from_batches(kept).to_pandas()


def measured(folder: Path, columns: int, page: bool) -> dict[str, float]:
    """In this process: from the files to the result."""
    started = time.perf_counter()
    from opmon.reports.drift import drift_report

    path = folder / "drift.html" if page else None
    before, after = (sampled(folder / name, 0) for name in ("reference.parquet", "log.parquet"))
    summary = drift_report(before, after, path, max_columns=columns, max_rows=SAMPLED)
    if summary.problem:
        raise RuntimeError(summary.problem)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time(),
        "tests": summary.seconds,
        "peak_mb": peak,
        "compared": len(summary.columns),
        "drifted": len(summary.drifted),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(measured(options.child, options.columns, options.page)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "reference.parquet", SAMPLED, options.columns, 0)
        write(folder / "log.parquet", options.rows, options.columns, 1)
        again = ["--child", name, "--columns", str(options.columns), *(["--page"] if options.page else [])]
        done = subprocess.run([sys.executable, __file__, *again], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{options.rows:,} inputs x {options.columns} columns: {found['seconds']:.1f} s (bar {SECONDS}), "
        f"{found['cpu']:.1f} s of CPU, of which tests {found['tests']:.1f} s; peak {found['peak_mb']:.0f} MB (bar "
        f"{MEGABYTES}); {found['drifted']:.0f} of {found['compared']:.0f} drifted"
    )
    if found["seconds"] > SECONDS or found["peak_mb"] > MEGABYTES:
        sys.exit(1)


if __name__ == "__main__":
    main()

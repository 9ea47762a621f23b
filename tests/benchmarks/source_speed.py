"""How fast the source ``files`` reads: 20,000 small files seen for the first time, and a scan beside pyarrow.dataset.

::

    python tests/benchmarks/source_speed.py            # all formats; --rows and --files make it smaller

Targets: 20,000 files are found and read in under 8 s; reading one million rows of 20 columns takes at most 1.3 times
what ``pyarrow.dataset`` takes for it (the least of several runs in turn of each).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from opmon.sources.files import Files

FORMATS = {"parquet": "parquet", "csv": "csv", "jsonl": "json"}


def small_files(folder: Path, form: str, count: int) -> None:
    rows = pa.table({"id": [1, 2, 3], "x": [0.5, 1.5, 2.5], "t": ["a", "b", "c"]})
    for number in range(count):
        write(rows, folder / f"{number:05}.{form}")


def one_file(folder: Path, form: str, count: int) -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, object] = {f"x{k}": rng.normal(size=count).round(6) for k in range(14)}
    columns |= {f"k{k}": rng.integers(0, 1000, count) for k in range(4)}
    columns |= {"id": np.arange(count).astype(str), "t": np.array(["alpha", "beta"])[rng.integers(0, 2, count)]}
    write(pa.table(columns), folder / f"all.{form}")


def write(rows: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(rows, path, row_group_size=131_072)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(rows, path)
    else:
        rows.to_pandas().to_json(path, orient="records", lines=True)


def seconds(work: Callable[[], int]) -> tuple[float, int]:
    begin = time.perf_counter()
    rows = work()
    return time.perf_counter() - begin, rows


def read(folder: Path) -> int:
    files = Files(str(folder))
    return sum(batch.rows.num_rows for batch in files.read(files.pending({})))


def scan(folder: Path, form: str) -> int:
    return sum(batch.num_rows for batch in pyarrow.dataset.dataset(folder, format=FORMATS[form]).to_batches())


def compare(form: str, files: int, rows: int, runs: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        small, large = Path(place, "small"), Path(place, "large")
        small.mkdir()
        large.mkdir()
        small_files(small, form, files)
        taken, found = seconds(lambda: read(small))
        print(f"{form:8} {files:,} files of 3 rows: {taken:.1f} s for {found:,} rows")
        one_file(large, form, rows)
        pairs = [(seconds(lambda: scan(large, form))[0], seconds(lambda: read(large))[0]) for _ in range(runs)]
        arrow, opmon = (min(times) for times in zip(*pairs, strict=True))
        print(f"{form:8} {rows:,} rows x 20: {opmon:.2f} s, pyarrow.dataset {arrow:.2f} s, ratio {opmon / arrow:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("formats", nargs="*", default=list(FORMATS))
    given = parser.parse_args()
    for form in given.formats:
        compare(form, given.files, given.rows, given.runs)


if __name__ == "__main__":
    main()

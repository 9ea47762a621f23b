"""A round of millions of rows from one Parquet file of six columns: how long it takes, and how much memory.

    python tests/benchmarks/large_round.py [--rows 5_000_000] [--against CHECKOUT] [--times 1] [--work FOLDER] [--json]

Each measurement runs in a process of its own: a real monitor with SQLite and MLflow reads, scores, draws and queues.
With ``--against`` the same round also runs with the ``opmon`` of another checkout, by turns with this one, such as
``git worktree add ../before COMMIT``. One line each: ``rows file_mb seconds cpu_seconds peak_mb before_mb``,
where ``before_mb`` is what the process took before the round, and ``cpu_seconds`` is all of its threads' time, which a
busy machine changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parents[2]
FEATURES = ("age", "income", "debt", "tenure")
COUNTED = FEATURES[:2]
"""Those with few different values, as ages have."""
CHUNK = 500_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--against", type=Path, help="a checkout of opmon to compare with")
    parser.add_argument("--times", type=int, default=1, help="how often each is measured")
    parser.add_argument("--work", type=Path, help="where the file is kept")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.work, options.rows)))
        return
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        prepare(work, options.rows)
        checkouts = [HERE] if options.against is None else [options.against.resolve(), HERE]
        for checkout in checkouts * options.times:
            command = [sys.executable, __file__, "--work", str(work), "--rows", str(options.rows), "--one"]
            environment = os.environ | {"PYTHONPATH": str(checkout)}
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
            row = {"opmon": str(checkout), **json.loads(done.stdout.splitlines()[-1])}
            print(json.dumps(row) if options.json else "  ".join(f"{k} {v}" for k, v in row.items()), flush=True)


def file_of(work: Path, rows: int) -> Path:
    return work / f"large-{rows}" / "production.parquet"


def prepare(work: Path, rows: int) -> None:
    """The log: an id, a time, and four numbers."""
    path = file_of(work, rows)
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, CHUNK):
        numbers = np.arange(start, min(start + CHUNK, rows))
        columns: dict[str, Any] = {
            "input_id": pa.array(numbers.astype(np.str_)),
            "at": pa.array(numbers * 1000 + 1_772_000_000_000_000, pa.timestamp("us", tz="UTC")),
        }
        columns |= {name: rng.normal(size=len(numbers)).astype(np.float32) for name in FEATURES}
        columns |= {name: rng.integers(0, 200, len(numbers)).astype(np.float32) / 100 for name in COUNTED}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path.with_suffix(".tmp"), table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    path.with_suffix(".tmp").rename(path)


def measure(work: Path, rows: int) -> dict[str, Any]:
    import opmon
    from opmon.config import Settings
    from opmon.monitor import Monitor

    path = file_of(work, rows)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        uri = f"sqlite:///{folder / 'mlflow.db'}"
        register(uri, folder)
        monitor = {
            "model": "models:/large/1",
            "source": {"path": str(path)},
            "inputs": {"features": list(FEATURES)},
            "columns": {"id": "input_id", "timestamp": "at"},
            "round": {"min_inputs": rows, "max_inputs": rows},
            "sampler": {"type": "sups", "variable": "confidence", "budget": 200},
        }
        settings = Settings.from_mapping({"mlflow": {"tracking_uri": uri}, "monitors": {"large": monitor}}, folder)
        watch = Monitor.from_settings(settings, "large")
        before, began, used = peak_mb(), time.perf_counter(), time.process_time()
        cycle = watch.advance()
        seconds, used = time.perf_counter() - began, time.process_time() - used
        if cycle.problems or cycle.opened != 1:
            raise SystemExit(f"the round did not go through: {cycle.problems or cycle}")
        return {
            "version": opmon.__version__,
            "rows": rows,
            "file_mb": path.stat().st_size >> 20,
            "seconds": round(seconds, 1),
            "cpu_seconds": round(used, 1),
            "peak_mb": peak_mb(),
            "before_mb": before,
        }


def register(uri: str, folder: Path) -> None:
    import mlflow
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(1).normal(size=(len(FEATURES), 3)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Softmax", ["s"], ["y"])]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", len(FEATURES)])]
    gives = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])]
    graph = helper.make_graph(nodes, "linear", given, gives, [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    mlflow.set_tracking_uri(uri)
    mlflow.create_experiment("training", (folder / "artifacts").as_uri())
    mlflow.set_experiment("training")
    with mlflow.start_run():
        logged = mlflow.onnx.log_model(model, name="model", pip_requirements=["onnxruntime"])
    mlflow.register_model(logged.model_uri, "large")


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    main()

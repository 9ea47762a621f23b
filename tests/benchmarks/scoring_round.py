"""A whole round, from Parquet files of images to frame and draw, beside ONNX Runtime alone on the same graph.

    python tests/benchmarks/scoring_round.py [--data FOLDER] [--work FOLDER] [--counts 100000 1000000] [--json]

Each count runs in a process of its own: a real monitor with SQLite and MLflow, a draw by DSA. One line per count:
``inputs seconds rate onnxruntime_rate share lanes_rate peak_mb``. ``onnxruntime_rate`` is of a session with ONNX
Runtime's own threads, which ``share`` compares with; ``lanes_rate`` of the same graph in the lanes that a round uses.
The files, the network and its reference are kept in ``--work``.
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
from typing import Any

import fashion
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scoring import fit

PER_FILE = 50_000
HEADS = ("dsa", "lsa")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=fashion.FOLDER, help="folder of Fashion-MNIST's four IDX files")
    parser.add_argument("--work", type=Path, help="where files are kept")
    parser.add_argument("--counts", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.work, options.one)))
        return
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        prepare(options.data, work, max(options.counts))
        for count in options.counts:
            command = [sys.executable, __file__, "--work", str(work), "--one", str(count)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            print(json.dumps(row) if options.json else "  ".join(f"{k} {v}" for k, v in row.items()), flush=True)


def prepare(data: Path, work: Path, count: int) -> None:
    """The network, its reference, and the files: training's pictures, moved by up to two pixels."""
    images, targets = fashion.load(data, "train")
    fit(fashion.cnn(work / "cnn.onnx", images, targets), work / "reference.npz", images, targets)
    folder = work / "production"
    folder.mkdir(exist_ok=True)
    for number in range((count + PER_FILE - 1) // PER_FILE):
        path = folder / f"{number:04}.parquet"
        if not path.exists():
            rng = np.random.default_rng(number)
            chosen = images[rng.integers(0, len(images), PER_FILE)].reshape(-1, 28, 28)
            moved = np.roll(chosen, tuple(rng.integers(-2, 3, 2).tolist()), axis=(1, 2))
            lists = pa.FixedSizeListArray.from_arrays(pa.array(moved.ravel()), 784)
            pq.write_table(pa.table({"x": lists}), path.with_suffix(".tmp"))
            path.with_suffix(".tmp").rename(path)


def measure(work: Path, count: int) -> dict[str, Any]:
    from opmon.config import Settings
    from opmon.monitor import Monitor

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        files = work / f"production-{count}"
        files.mkdir(exist_ok=True)
        for path in sorted((work / "production").glob("*.parquet"))[: count // PER_FILE]:
            if not (files / path.name).exists():
                (files / path.name).hardlink_to(path)
        uri = f"sqlite:///{folder / 'mlflow.db'}"
        register(work / "cnn.onnx", uri, folder)
        monitor = {
            "model": "models:/fashion/1",
            "reference": str(work / "reference.npz"),
            "variables": list(HEADS),
            "inputs": {"tensor": "x"},
            "source": {"path": str(files)},
            "round": {"min_inputs": count, "max_inputs": count},
            "sampler": {"type": "sups", "variable": "dsa", "budget": 200},
        }
        settings = Settings.from_mapping({"mlflow": {"tracking_uri": uri}, "monitors": {"fashion": monitor}}, folder)
        watch = Monitor.from_settings(settings, "fashion")
        before = peak_mb()
        alone, lanes = runtime_alone(work, 1), runtime_alone(work, None)
        began = time.perf_counter()
        cycle = watch.advance()
        seconds = time.perf_counter() - began
        if cycle.problems or cycle.opened != 1:
            raise SystemExit(f"the round did not go through: {cycle.problems or cycle}")
        rate = count / seconds
        return {
            "inputs": count,
            "seconds": round(seconds, 2),
            "rate": round(rate),
            "onnxruntime_rate": round(alone),
            "share": round(rate / alone, 3),
            "lanes_rate": round(lanes),
            "peak_mb": peak_mb(),
            "peak_mb_before": before,
        }


def runtime_alone(work: Path, lanes: int | None, batch: int = 1024, seconds: float = 5.0) -> float:
    """Inputs a second of the same graph on the same cores, fed from memory."""
    from opmon import plugins
    from opmon.scoring.reference.fitted import Reference
    from opmon.scoring.scorer import Scorer

    heads = {name: plugins.make("head", name) for name in HEADS}
    reference = Reference.load(work / "reference.npz")
    scorer = Scorer.open(work / "cnn.onnx", "classification", heads=heads, reference=reference, lanes=lanes)
    names = (*scorer.outputs.names, *scorer.variables.values())
    images = np.random.default_rng(0).integers(0, 255, (16 * batch, 1, 28, 28)).astype(np.float32)
    scorer.run(names, {"x": images[:batch]})
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        scorer.run(names, {"x": images})
        done += len(images)
    return done / (time.perf_counter() - began)


def register(path: Path, uri: str, folder: Path) -> None:
    import mlflow
    import onnx

    mlflow.set_tracking_uri(uri)
    mlflow.create_experiment("training", (folder / "artifacts").as_uri())
    mlflow.set_experiment("training")
    with mlflow.start_run():
        logged = mlflow.onnx.log_model(onnx.load(str(path)), name="model", pip_requirements=["onnxruntime"])
    mlflow.register_model(logged.model_uri, "fashion")


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    main()

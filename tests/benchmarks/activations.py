"""A round of CES, from Parquet files to frame and draw: time, peak memory and the size of the frame.

    python tests/benchmarks/activations.py [--counts 100000 1000000] [--neurons 64 512] [--json]

Each case runs in a process of its own: a real monitor with SQLite and MLflow, and a network of 32 inputs with one
hidden layer. One line per case: ``inputs neurons seconds peak_mb peak_mb_before frame_mb draw_seconds``.
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

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PER_FILE, FEATURES, CLASSES = 50_000, 32, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--neurons", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.counts[0], options.neurons[0])))
        return
    for neurons in options.neurons:
        for count in options.counts:
            command = [sys.executable, __file__, "--one", "--counts", str(count), "--neurons", str(neurons)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            print(json.dumps(row) if options.json else "  ".join(f"{k} {v}" for k, v in row.items()), flush=True)


def measure(count: int, neurons: int) -> dict[str, Any]:
    from opmon.config import Settings
    from opmon.monitor import Monitor
    from opmon.stages.draw import frame_path
    from opmon.stages.frames import read_frame
    from opmon.stages.toolbox import sampler_of
    from opmon.store import rounds

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_inputs(folder / "production", count)
        uri = f"sqlite:///{folder / 'mlflow.db'}"
        register(network(neurons), uri, folder)
        monitor = {
            "model": "models:/network/1",
            "inputs": {"tensor": "x"},
            "source": {"path": str(folder / "production")},
            "round": {"min_inputs": count, "max_inputs": count},
            "sampler": {"type": "ces", "budget": 200},
            "drift": {"enabled": False},
        }
        settings = Settings.from_mapping({"mlflow": {"tracking_uri": uri}, "monitors": {"network": monitor}}, folder)
        watch = Monitor.from_settings(settings, "network")
        before = peak_mb()
        began = time.perf_counter()
        cycle = watch.advance()
        seconds = time.perf_counter() - began
        if cycle.problems or cycle.opened != 1:
            raise SystemExit(f"the round did not go through: {cycle.problems or cycle}")
        peak = peak_mb()
        with watch.store.read() as connection:
            round_ = rounds.get(connection, "network", 1)
        with watch._at_work() as work:
            frame = read_frame(frame_path(work, round_), activations=True)
            size = sum(path.stat().st_size for path in work.round_folder(round_).glob("*.parquet"))
        began = time.perf_counter()
        sampler_of(round_.plan).draw(frame, 200, np.random.default_rng(0))
        return {
            "inputs": count,
            "neurons": neurons,
            "seconds": round(seconds, 2),
            "peak_mb": peak,
            "peak_mb_before": before,
            "frame_mb": size >> 20,
            "draw_seconds": round(time.perf_counter() - began, 2),
        }


def write_inputs(folder: Path, count: int) -> None:
    folder.mkdir()
    for number, start in enumerate(range(0, count, PER_FILE)):
        rows = np.random.default_rng(number).normal(size=(min(PER_FILE, count - start), FEATURES)).astype(np.float32)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), FEATURES)
        pq.write_table(pa.table({"x": lists}), folder / f"{number:04}.parquet")


def network(neurons: int) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = {
        "first": rng.normal(size=(FEATURES, neurons)).astype(np.float32),
        "second": (rng.normal(size=(neurons, CLASSES)) / neurons**0.5).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["sums"]),
        helper.make_node("Relu", ["sums"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "second"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["inputs", FEATURES])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["inputs", CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def register(model: Any, uri: str, folder: Path) -> None:
    import mlflow

    mlflow.set_tracking_uri(uri)
    mlflow.create_experiment("training", (folder / "artifacts").as_uri())
    mlflow.set_experiment("training")
    with mlflow.start_run():
        logged = mlflow.onnx.log_model(model, name="model", pip_requirements=["onnxruntime"])
    mlflow.register_model(logged.model_uri, "network")


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    main()

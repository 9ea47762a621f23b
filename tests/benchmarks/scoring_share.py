"""What scoring adds to ONNX Runtime: inputs a second of both with one thread, the second at its best batch size.

    python tests/benchmarks/scoring_share.py [--models tiny small resnet] [--seconds 4] [--json]

One line per model. ``share``: the rate of reading Arrow batches, running the model and making predictions and variables
of its outputs, divided by the rate of ONNX Runtime fed from memory. The two take turns, and the best turn of each
counts; still, the machine should have little else to do. ``processor_share``: the same in the time that the process had
a core, with what is read and prepared beside the model. ``identical``: both give the same class for every input, and
the same scores to the last bit. Bars of ``share``: tiny 0.6, small 0.92, resnet 0.97.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fashion
import numpy as np
import onnx
import pyarrow as pa
from numpy.typing import NDArray
from onnx import helper

from opmon.scoring.scorer import Scorer
from opmon.scoring.session import Session, open_session
from opmon.types import Batch

Array = NDArray[Any]
SIZES = {"tiny": (64, 256, 1024, 4096), "small": (8, 16, 32, 64, 128, 256, 1024), "resnet": (1, 2, 4, 8, 16)}
BATCH_BYTES = 4 << 20
BARS = {"tiny": 0.6, "small": 0.92, "resnet": 0.97}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--seconds", type=float, default=4.0, help="for each of the two, and each model")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args()
    for name in options.models:
        row = measured(name, *subject(name), options.seconds)
        print(json.dumps(row) if options.json else "  ".join(f"{k} {v}" for k, v in row.items()), flush=True)


def subject(name: str) -> tuple[Any, Array]:
    """The model, and inputs as it takes them."""
    rng = np.random.default_rng(0)
    if name == "tiny":
        return perceptron(rng), rng.normal(size=(262_144, 64)).astype(np.float32)
    if name == "small":
        return small(rng), rng.integers(0, 256, size=(8192, 1, 28, 28)).astype(np.float32)
    return fashion.resnet18(), rng.normal(size=(48, 3, 224, 224)).astype(np.float32)


def perceptron(rng: np.random.Generator) -> Any:
    """64 numbers -> 64 rectified neurons -> 10 probabilities."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["z"]),
        helper.make_node("Softmax", ["z"], ["logits"], axis=-1),
    ]
    weights = {"w1": rng.normal(size=(64, 64)) / 8, "w2": rng.normal(size=(64, 10)) / 8}
    return fashion.model(nodes, {**weights, "b1": np.zeros(64), "b2": np.zeros(10)}, ["n", 64], ["n", 10])


def small(rng: np.random.Generator) -> Any:
    """The network of the other benchmarks, with weights at random."""
    shapes = {"c1": (16, 1, 3, 3), "c2": (32, 16, 3, 3), "d1": (fashion.HIDDEN, 1568), "d2": (10, fashion.HIDDEN)}
    weights = {f"{key}.weight": rng.normal(size=size) / np.sqrt(np.prod(size[1:])) for key, size in shapes.items()}
    return fashion.network({**weights, **{f"{key}.bias": np.zeros(size[0]) for key, size in shapes.items()}})


def measured(name: str, model: Any, x: Array, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, str(path))
        alone = open_session(path, "cpu", threads=1)
        scorer = Scorer.open(path, "classification", device="cpu", threads=1, lanes=1, tensor="x")
        batches = list(in_batches(x))
        bare, size = best_size(alone, x, SIZES[name])
        predictions = np.concatenate([part.predictions for part in scorer.score(batches)])
        run = lambda: sum(len(part.rows) for part in scorer.score(batches))  # noqa: E731
        rates = in_turns([run, bare], len(x), seconds)
        scores = scorer.run(["logits"], {"x": x})[0]
        plain = np.concatenate([alone.run(["logits"], {"x": x[at : at + size]})[0] for at in range(0, len(x), size)])
        same = scores.tobytes() == plain.tobytes() and (predictions == plain.argmax(axis=1).astype(str)).all()
        return {
            "model": name,
            "rate": round(rates[0][0], 1),
            "onnxruntime_rate": round(rates[1][0], 1),
            "share": round(rates[0][0] / rates[1][0], 3),
            "bar": BARS[name],
            "processor_share": round(rates[0][1] / rates[1][1], 3),
            "batch": scorer.runner.sizes.usual,
            "onnxruntime_batch": size,
            "identical": bool(same),
        }


def in_batches(x: Array) -> Iterator[Batch]:
    """As a source gives them: some megabytes at a time."""
    flat = x.reshape(len(x), -1)
    step = min(65_536, max(1, BATCH_BYTES // flat[0].nbytes))
    for start in range(0, len(x), step):
        part = flat[start : start + step]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), flat.shape[1])
        yield Batch(0, start, pa.RecordBatch.from_pydict({"x": lists}))


def best_size(session: Session, x: Array, sizes: tuple[int, ...]) -> tuple[Callable[[], Any], int]:
    """ONNX Runtime alone at the batch size that it is quickest with."""

    def runner(size: int) -> Callable[[], Any]:
        parts = [{"x": x[start : start + size]} for start in range(0, len(x), size)]
        return lambda: [session.run(["logits"], part) for part in parts]

    rates = in_turns([runner(size) for size in sizes], len(x), 1.0)
    size = max(zip(rates, sizes, strict=True))[1]
    return runner(size), size


def in_turns(works: list[Callable[[], Any]], count: int, seconds: float) -> list[tuple[float, float]]:
    """Inputs a second of each piece of work, at the best of its turns: by the clock, and of the processor's time."""
    best = [(float("inf"), float("inf"))] * len(works)
    for work in works:
        work()
    began = time.perf_counter()
    while time.perf_counter() - began < seconds * len(works):
        for place, work in enumerate(works):
            start, busy = time.perf_counter(), time.process_time()
            work()
            took = time.perf_counter() - start, time.process_time() - busy
            best[place] = min(best[place][0], took[0]), min(best[place][1], took[1])
    return [(count / clock, count / processor) for clock, processor in best]


if __name__ == "__main__":
    main()

"""How fast the heads are, how exact, and what they add to a model: on Fashion-MNIST and one thread.

    python tests/benchmarks/scoring.py [--data FOLDER] [--work FOLDER] [--quick] [--json]

One line per head: inputs a second of the head alone (fed with activations), of SADL's definition one input at a time,
their ratio, and the largest error against float64. Then what the heads add to models, and many classes. The trained
network and its reference are kept in ``--work``. ``scoring_round.py`` measures a whole round.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import fashion
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from onnx import helper
from scipy.stats import gaussian_kde

from opmon import plugins
from opmon.scoring.graph.compiled import compile_graph
from opmon.scoring.heads.dsa import DistanceSurprise
from opmon.scoring.heads.lsa import LikelihoodSurprise
from opmon.scoring.outputs.planning import plan_outputs
from opmon.scoring.reference.densities import kept_neurons
from opmon.scoring.reference.fitted import Reference
from opmon.scoring.reference.fitting import open_fit
from opmon.scoring.session import Session, open_session
from opmon.types import Batch

Array = NDArray[Any]
NAMES = ("confidence", "margin", "entropy", "gini", "dsa", "lsa", "combined")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=fashion.FOLDER, help="folder of Fashion-MNIST's four IDX files")
    parser.add_argument("--work", type=Path, help="where the network and its reference are kept")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, no ResNet")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        for row in rows(options.data, work, 3 if options.quick else 15, resnet=not options.quick):
            shown = {key: _short(value) for key, value in row.items()}
            print(json.dumps(shown) if options.json else "  ".join(f"{k} {v}" for k, v in shown.items()), flush=True)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB", file=sys.stderr)


def rows(data: Path, work: Path, repeats: int, resnet: bool) -> Any:
    images, targets = fashion.load(data, "train")
    later, _ = fashion.load(data, "t10k")
    path = fashion.cnn(work / "cnn.onnx", images, targets)
    reference = fit(path, work / "reference.npz", images, targets)
    yield from single_heads(path, reference, images, later, repeats)
    yield from added_to("small CNN, batch 1024", path.read_bytes(), reference, _pictures(later[:1024]), repeats)
    yield from many_classes(1000, repeats)
    if resnet:
        rng = np.random.default_rng(0)
        wide = made_up(10, 512)
        pictures = rng.normal(size=(64, 3, 224, 224)).astype(np.float32)
        yield from added_to("ResNet-18, batch 64", fashion.resnet18().SerializeToString(), wide, pictures, 4)


def fit(path: Path, kept: Path, images: Array, targets: Array) -> Reference:
    """The reference of all training inputs, from its file where it is there."""
    if not kept.exists():
        open_fit(path, "classification", label="label", device="cpu", tensor="x").run(batches(images, targets)).save(
            kept
        )
    return Reference.load(kept)


def batches(images: Array, targets: Array, step: int = 4096) -> Any:
    for start in range(0, len(images), step):
        part = images[start : start + step]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), 784)
        columns = {"x": lists, "label": pa.array(targets[start : start + step])}
        yield Batch(0, start, pa.RecordBatch.from_pydict(columns))


def single_heads(path: Path, reference: Reference, images: Array, later: Array, repeats: int) -> Any:
    """Each head alone on activations, and SADL's definition on the same."""
    asked = np.concatenate([later[:1024], images[:512]])
    whole = compiled(path.read_bytes(), {}, reference, traced=True)
    activations, predicted = whole.run(["opmon/activations", "opmon/predicted"], {"x": _pictures(asked)})
    weights, peak = _last_layer(path), sgemm_peak(repeats)
    heads = {name: plugins.make("head", name) for name in NAMES} | {"dsa_input": DistanceSurprise("input")}
    sets: list[tuple[str, Mapping[str, Any]]] = [(name, {name: head}) for name, head in heads.items()]
    sets.append(("fused", {name: heads[name] for name in ("confidence", "dsa", "lsa")}))
    for name, chosen in sets:
        session = compiled(tail(*weights), chosen, reference, layer="hidden", raw=True)
        feeds = {"x": activations[:1024]}
        outputs = [item.name for item in session.outputs if item.name in chosen]
        rate = 1024 / best(lambda s=session, o=outputs, f=feeds: s.run(o, f), repeats)
        row: dict[str, Any] = {"head": name, "rate": rate}
        if name in ("dsa", "dsa_input", "lsa"):
            found = session.run([f"{name}_raw"], {"x": activations})[0]
            row |= against_definition(name, reference, activations, predicted, found, repeats)
            row["ratio"] = rate / row["reference_rate"]
        if name in ("dsa", "lsa"):
            live = reference.traces.std(axis=0) > 0 if name == "dsa" else kept_neurons(reference)
            row["sgemm_share"] = rate * 2 * len(reference.traces) / 10 * int(live.sum()) / peak
        yield row


def against_definition(
    name: str, reference: Reference, activations: Array, predicted: Array, found: Array, repeats: int
) -> dict[str, float]:
    """Every third input by SADL's definition, in float64: its rate, and how far the head is from it."""
    traces = reference.traces.astype(np.float64)
    own = {number: traces[reference.predicted == number] for number in reference.classes}
    others = {number: traces[reference.predicted != number] for number in reference.classes}
    kept = kept_neurons(reference)
    densities = {number: gaussian_kde(rows[:, kept].T) for number, rows in own.items()} if name == "lsa" else {}

    def one(activation: Array, number: int) -> float:
        if name == "lsa":
            return float(-densities[number].logpdf(activation[kept])[0])
        distances = np.linalg.norm(own[number] - activation, axis=1)
        start = own[number][distances.argmin()] if name == "dsa" else activation
        return float(distances.min() / np.linalg.norm(others[number] - start, axis=1).min())

    chosen = np.arange(0, len(activations), 3 if repeats > 5 else 30)
    began = time.perf_counter()
    expected = np.array([one(activations[i].astype(np.float64), int(predicted[i])) for i in chosen])
    rate = len(chosen) / (time.perf_counter() - began)
    error = np.abs(found[chosen] - expected)
    if name != "lsa":
        error = np.divide(error, expected, out=np.where(error > 0, np.inf, 0.0), where=expected > 0)
    return {"reference_rate": rate, "max_error": float(error.max())}


def added_to(name: str, model: bytes, reference: Reference, x: Array, repeats: int) -> Any:
    """What the three heads together cost beside a model."""
    plain = open_session(model, "cpu", threads=1)
    heads = {"confidence": plugins.make("head", "confidence"), "dsa": DistanceSurprise(), "lsa": LikelihoodSurprise()}
    fused = compiled(model, heads, reference)
    names = ["logits", *heads]
    same = bool((plain.run(["logits"], {"x": x})[0] == fused.run(["logits"], {"x": x})[0]).all())
    times: list[list[float]] = [[], []]
    for _ in range(repeats):  # in turns, so that both meet the same machine
        times[0].append(best(lambda: plain.run(["logits"], {"x": x}), 2, warm=False))
        times[1].append(best(lambda: fused.run(names, {"x": x}), 2, warm=False))
    alone, together = min(times[0]), min(times[1])
    row = {"head": f"fused with {name}", "rate": len(x) / together, "reference_rate": len(x) / alone}
    yield {
        **row,
        "cost": together / alone,
        "median_cost": float(np.median(np.divide(times[1], times[0]))),
        "identical": same,
    }


def many_classes(classes: int, repeats: int) -> Any:
    """Sorted by class in NumPy, on as many inputs as a file's batch has, and in the graph at batch 1024."""
    reference = made_up(classes, 64)
    rng = np.random.default_rng(1)
    activations = rng.normal(size=(16_384, 64)).astype(np.float32)
    predicted = rng.integers(0, classes, len(activations))
    last = tail(rng.normal(size=(64, classes)).astype(np.float32), np.zeros(classes, np.float32))
    for name, head in (("dsa", DistanceSurprise()), ("lsa", LikelihoodSurprise())):
        function = head.function(reference)
        rate = len(activations) / best(lambda f=function: f(activations, predicted), repeats)
        session = compiled(last, {name: head}, reference, layer="hidden", whole=True)
        inside = best(lambda s=session, n=name: s.run([n], {"x": activations[:1024]}), repeats)
        yield {"head": f"{name}, {classes} classes", "rate": rate, "graph_rate": 1024 / inside}


def made_up(classes: int, neurons: int, count: int = 60_000) -> Reference:
    """Traces at random: for speed alone."""
    rng = np.random.default_rng(0)
    traces = rng.normal(size=(count, neurons)).astype(np.float32)
    limits = {"dsa:reference": (0.0, 2.0), "lsa": (0.0, 900.0)}
    predicted = rng.integers(0, classes, count)
    return Reference("", "hidden", "classification", classes, traces, predicted, np.ones(count), limits)


def compiled(model: bytes, heads: Mapping[str, Any], reference: Reference, **options: Any) -> Session:
    import onnx

    graph = onnx.load_from_string(model)
    plain = open_session(model, "cpu", threads=1)
    outputs = plan_outputs(graph, plain.outputs, "classification")
    made = compile_graph(graph, outputs, plain.outputs[0], heads, replace(reference, layer="hidden"), **options)
    return open_session(made.model.SerializeToString(), "cpu", threads=1)


def tail(weights: Array, bias: Array) -> bytes:
    """The model from its last hidden layer on."""
    nodes = [
        helper.make_node("Identity", ["x"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "w", "b"], ["logits"]),
    ]
    return bytes(
        fashion.model(nodes, {"w": weights, "b": bias}, ["n", len(weights)], ["n", len(bias)]).SerializeToString()
    )


def _last_layer(path: Path) -> tuple[Array, Array]:
    import onnx
    from onnx import numpy_helper

    found = {item.name: numpy_helper.to_array(item) for item in onnx.load(str(path)).graph.initializer}
    return found["d2.weight"].T, found["d2.bias"]


def sgemm_peak(repeats: int) -> float:
    """Floating-point operations a second of one large product, by ONNX Runtime on one thread."""
    size = 1024
    rng = np.random.default_rng(0)
    square = rng.normal(size=(size, size)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["logits"])
    session = open_session(fashion.model([node], {"w": square}, ["n", size], ["n", size]).SerializeToString(), "cpu", 1)
    return 2 * size**3 / best(lambda: session.run(["logits"], {"x": square}), repeats)


def best(work: Callable[[], Any], repeats: int, warm: bool = True) -> float:
    if warm:
        work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def _pictures(images: Array) -> Array:
    return images.reshape(-1, 1, 28, 28).astype(np.float32)


def _short(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()

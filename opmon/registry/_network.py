"""The process that exports a PyTorch model to ONNX, or answers by it: its code is run in no process of opmon's.

It is given the folder that MLflow wrote and either ``export`` with the file to write, or ``answer`` with a file of
inputs and one for the answers, both of NumPy's (npz). It stands alone, and needs mlflow, torch and onnxruntime. What it
fails on is the last line of its standard error.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mlflow.models import Model
    from mlflow.types import Schema

COLUMNS = "inputs"
"""The input that takes all columns of a table, as MLflow gives them to a network: as a matrix in float32."""
BATCH, OTHER = 2, 8
"""The sizes that the example has where the signature leaves them open; one input may be taken for a fixed size."""
TRIED = (1, 5)
"""The graph must answer so many inputs as the network does."""
CLOSE = 1e-2


def loaded(folder: Path) -> tuple[Any, Model]:
    """The network, ready to answer, and what MLflow was told of it."""
    import mlflow.pytorch
    import torch
    from mlflow.models import Model

    pickled = {"map_location": "cpu", "weights_only": False}
    network = mlflow.pytorch.load_model(str(folder), **pickled)
    torch.manual_seed(0)
    return network, Model.load(str(folder))


def answers(network: Any, given: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """The outputs of the network, by name, that hold a row for each input."""
    import torch

    tensors = [torch.from_numpy(np.array(values)) for values in given.values()]
    with torch.no_grad():
        found = named(asked(network, list(given), tensors), len(tensors[0]))
    return {name: value.detach().numpy() for name, value in found.items()}


def asked(network: Any, names: Sequence[str], tensors: Sequence[Any]) -> Any:
    """What the network gives: its arguments go by name where it has them all, else in the signature's order."""
    if len(names) > 1 and set(names) <= arguments(network):
        return network(**dict(zip(names, tensors, strict=True)))
    return network(*tensors)


def arguments(network: Any) -> set[str]:
    import inspect

    try:
        return set(inspect.signature(network.forward).parameters)
    except (TypeError, ValueError):
        return set()


def named(answer: Any, count: int) -> dict[str, Any]:
    """The tensors in an answer with a row for each input; those of a dictionary have its names."""
    import torch
    from torch.utils import _pytree

    if isinstance(answer, dict):
        leaves = {str(name): value for name, value in answer.items() if isinstance(value, torch.Tensor)}
    else:
        found = [leaf for leaf in _pytree.tree_leaves(answer) if isinstance(leaf, torch.Tensor)]
        leaves = {"output" if len(found) == 1 else f"output_{place}": leaf for place, leaf in enumerate(found)}
    kept = {name: leaf for name, leaf in leaves.items() if leaf.ndim and leaf.shape[0] == count}
    if not kept:
        raise ValueError("it gives no tensor with a row for each input")
    return kept


def example(folder: Path, told: Model) -> dict[str, tuple[np.ndarray[Any, Any], set[int]]]:
    """Inputs of the shape and type that the model was logged with, by name, and which of their sizes are open."""
    schema = told.signature.inputs if told.signature is not None else None
    if schema is None or not len(schema):
        raise ValueError(
            "it was logged without a signature, which says what it takes: log it with one "
            "(mlflow.models.infer_signature)"
        )
    if not schema.is_tensor_spec():
        return {COLUMNS: (drawn((BATCH, len(schema)), np.dtype(np.float32)), {0})}
    kept = logged_example(folder, told, schema)
    found = {}
    for place, spec in enumerate(schema):
        name = spec.name or (COLUMNS if len(schema) == 1 else f"{COLUMNS}_{place}")
        like = kept.get(place)
        free = {at for at, size in enumerate(spec.shape) if size < 0} | {0}
        known = like.shape if like is not None and like.ndim == len(spec.shape) else (OTHER,) * len(spec.shape)
        sizes = [known[at] if size < 0 else size for at, size in enumerate(spec.shape)]
        found[name] = drawn((BATCH, *sizes[1:]), spec.type, like), free
    return found


def logged_example(folder: Path, told: Model, schema: Schema) -> dict[int, np.ndarray[Any, Any]]:
    """The input example, by the place of the input in the signature; nothing where there is none that is understood."""
    try:
        kept: Any = told.load_input_example(str(folder))
    except Exception:  # noqa: BLE001 - it is a help and no need
        return {}
    names = [spec.name for spec in schema]
    values = [kept[name] for name in names] if isinstance(kept, dict) else kept
    values = list(values) if isinstance(values, list | tuple) and len(values) == len(names) else [values]
    if len(values) != len(names):
        return {}
    return {place: np.asarray(value) for place, value in enumerate(values) if np.asarray(value).dtype != object}


def drawn(
    shape: tuple[int, ...], kind: np.dtype[Any], like: np.ndarray[Any, Any] | None = None
) -> np.ndarray[Any, Any]:
    """Numbers of a kind: random ones, or whole ones of the logged example, such as words that the network knows."""
    if kind.kind == "f":
        return np.random.default_rng(0).normal(size=shape).astype(kind)
    whole = np.zeros(shape, kind)
    if like is not None and like.size and like.dtype.kind in "biu":
        whole.reshape(-1)[:] = np.resize(like.reshape(-1), whole.size)
    return whole


def export(folder: Path, path: Path) -> None:
    """Write the network as ONNX, with any number of inputs at a time."""
    import torch

    network, told = loaded(folder)
    given = example(folder, told)
    names, values = list(given), {name: array for name, (array, _) in given.items()}
    outputs = list(answers(network, values))
    tensors = tuple(torch.from_numpy(array) for array in values.values())
    graph = Outputs.of(network, names, outputs)
    reasons = []
    for way in (by_graph, by_trace):
        try:
            way(graph, tensors, [free for _, free in given.values()], names, outputs, path)
            require_alike(network, values, path)
        except Exception as exc:  # noqa: BLE001 - an exporter fails in any way, and the next one may not
            reasons.append(words(exc))
        else:
            return
    raise ValueError("; ".join(dict.fromkeys(reasons)))


class Outputs:
    """Makes a network that gives its named outputs in their order, and takes its inputs in that of the signature."""

    @staticmethod
    def of(network: Any, names: Sequence[str], outputs: Sequence[str]) -> Any:
        import torch

        if isinstance(network, torch.jit.ScriptModule):  # a graph already, and no part of another
            return network

        class Ordered(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.network = network

            def forward(self, *given: Any) -> Any:
                found = named(asked(self.network, names, given), given[0].shape[0])
                return tuple(found[name] for name in outputs)

        ordered = Ordered()
        ordered.training = False
        return ordered


def by_graph(
    network: Any, given: Any, free: Sequence[set[int]], names: Sequence[str], outputs: Sequence[str], path: Path
) -> None:
    """Export what the network computes as PyTorch's compiler sees it."""
    import onnxscript  # noqa: F401 - the exporter needs it, and says so in many lines
    import torch

    size = torch.export.Dim.DYNAMIC, torch.export.Dim.AUTO
    shapes = tuple({at: size[at > 0] for at in sorted(places)} for places in free)
    how = {"dynamo": True, "verbose": False, "dynamic_shapes": (shapes,), "external_data": False}
    _export(network, given, names, outputs, path, how)


def by_trace(
    network: Any, given: Any, free: Sequence[set[int]], names: Sequence[str], outputs: Sequence[str], path: Path
) -> None:
    """Export what the network does to the example: older, and it takes some networks that the compiler does not."""
    axes = {
        name: {at: f"{name}_{at}" if at else "batch" for at in places} for name, places in zip(names, free, strict=True)
    }
    axes |= {name: {0: "batch"} for name in outputs}
    _export(network, given, names, outputs, path, {"dynamo": False, "dynamic_axes": axes})


def _export(
    network: Any, given: Any, names: Sequence[str], outputs: Sequence[str], path: Path, how: dict[str, Any]
) -> None:
    import torch

    torch.onnx.export(network, given, str(path), input_names=list(names), output_names=list(outputs), **how)


def require_alike(network: Any, given: Mapping[str, np.ndarray[Any, Any]], path: Path) -> None:
    """Ask the graph and the network the same, also another number of inputs than the graph was made with."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for count in TRIED:
        inputs = {name: np.resize(values, (count, *values.shape[1:])) for name, values in given.items()}
        wanted = answers(network, inputs)
        taken = {item.name for item in session.get_inputs()}  # one that has no part in the outputs is left out
        found = session.run(list(wanted), {name: value for name, value in inputs.items() if name in taken})
        for name, own in zip(wanted, found, strict=True):
            true = wanted[name].astype(np.float64)
            if own.shape != true.shape:
                raise ValueError(f"the graph gives {name} as {own.shape} for {count} inputs, the network {true.shape}")
            limit = CLOSE * max(1e-3, float(np.abs(true[np.isfinite(true)]).max(initial=0)))
            if not np.allclose(own, true, rtol=CLOSE, atol=limit, equal_nan=True):
                raise ValueError(f"the graph gives other numbers than the network for {count} inputs")


def words(exc: BaseException) -> str:
    first = next((line.strip() for line in str(exc).splitlines() if line.strip()), "")
    return f"{type(exc).__name__}: {first[:200]}"


def main() -> None:
    """Do what the arguments say."""
    warnings.simplefilter("ignore")
    folder, what, *paths = sys.argv[1:]
    try:
        if what == "export":
            export(Path(folder), Path(paths[0]))
            return
        with np.load(paths[0], allow_pickle=False) as kept:
            found = answers(loaded(Path(folder))[0], dict(kept))
        np.savez(paths[1], **found)  # type: ignore[arg-type]  # no keyword of it has such a name
    except BaseException as exc:  # noqa: BLE001 - a model may end in any way, and its reason is wanted
        print(words(exc), file=sys.stderr)  # noqa: T201 - the reason is read there
        sys.exit(1)


if __name__ == "__main__":
    main()

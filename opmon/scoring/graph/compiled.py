"""Compiling a model and its heads into one graph, and reading what was compiled."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.problems import traits
from opmon.scoring.graph.file import copied
from opmon.scoring.graph.monitor_graph import ACTIVATIONS, PREDICTED, UNKNOWN, MonitorGraph
from opmon.scoring.graph.nodes import PREFIX, Nodes
from opmon.scoring.outputs.meaning import Outputs
from opmon.scoring.outputs.variables import FLOOR
from opmon.scoring.reference.fitted import Reference
from opmon.scoring.session import Tensor
from opmon.types import Json, Numbers

if TYPE_CHECKING:
    from onnx import ModelProto

    from opmon.abc import Head

METADATA = "opmon"
ArrayFunction = Callable[[NDArray[np.float32], NDArray[np.int64]], Numbers]
_OLDEST, _CONVERTED, _IR = 11, 13, 10


@dataclass(frozen=True, eq=False)
class Compiled:
    """A model with its variables. ``outside`` are the heads that are computed from its extra outputs, in NumPy."""

    model: ModelProto
    outputs: Mapping[str, str]
    """The output of each variable."""
    outside: tuple[str, ...]


def compile_graph(
    model: ModelProto,
    outputs: Outputs,
    score: Tensor,
    heads: Mapping[str, Head],
    reference: Reference | None = None,
    layer: str | None = None,
    raw: bool = False,
    traced: bool = False,
    whole: bool = False,
) -> Compiled:
    """A copy of ``model`` with one more output for each head; its own outputs stay as they are.

    ``raw`` adds outputs ``<name>_raw``, before normalisation, for the heads that normalise. ``traced`` adds
    the activations and the predicted class. ``whole`` puts into the graph what would be quicker outside of it.
    """
    columns, single = columns_of(outputs, score)
    graph = MonitorGraph(Nodes(_modern(model)), outputs, columns, single, layer, reference, whole)
    if reference is not None and reference.columns != columns:
        raise ModelError(
            f"the reference was fitted for {reference.columns} classes and the model has {columns} (0: none); "
            f"fit one for this model with opmon reference"
        )
    taken = {item.name for item in graph.model.graph.output}
    named: dict[str, str] = {}
    outside: list[str] = []
    for name, head in heads.items():
        tensor = head.nodes(graph)
        if tensor is None:
            outside.append(name)
            continue
        output = name if name not in taken else f"opmon_{name}"
        _variable(graph, tensor, output)
        named[name] = output
        plain = graph.raw.get(tensor) if raw else None
        if plain is not None:
            graph.nodes.output(plain, f"{output}_raw", np.float32, ["inputs"])
    if outside or traced:
        graph.nodes.output(graph.activations, ACTIVATIONS, np.float32, ["inputs", graph.layer.width])
        if columns:
            graph.nodes.output(graph.predicted, PREDICTED, np.int64, ["inputs"])
    _describe(graph, named, reference)
    return Compiled(graph.model, named, tuple(outside))


def on_one_thread() -> contextlib.AbstractContextManager[object]:
    """Limit matrix products to one thread: those of a compilation are small, and threads mostly wait."""
    from threadpoolctl import threadpool_limits

    limits: contextlib.AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits


def serialised(model: ModelProto) -> bytes:
    """The file's bytes; weights in other files stay there."""
    try:
        return model.SerializeToString()
    except Exception as exc:  # protobuf's error differs from version to version
        raise ModelError(
            f"the model with its reference is larger than the 2 GB an ONNX file may have ({exc}): fit a smaller "
            f"reference (opmon reference --limit), or keep the weights in a file beside the model"
        ) from exc


def functions_of(
    compiled: Compiled, heads: Mapping[str, Head], reference: Reference | None
) -> dict[str, ArrayFunction]:
    """The NumPy functions of the heads that are computed outside of the graph."""
    functions: dict[str, ArrayFunction] = {}
    for name in compiled.outside:
        function = heads[name].function(reference)
        if function is None:
            raise ModelError(
                f"the variable {name!r} gives neither ONNX nodes for this model nor a NumPy function; leave it out"
            )
        functions[name] = function
    return functions


def bounded(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The values, with those that are not finite made the most or least suspicious: the input must still be drawn."""
    result: NDArray[np.float32] = np.nan_to_num(values, copy=False, nan=1.0, posinf=UNKNOWN, neginf=0.0)
    return result


def is_added(name: str, variables: Mapping[str, str]) -> bool:
    """Whether an output was added by opmon."""
    return name.startswith(PREFIX) or any(name in (own, f"{own}_raw") for own in variables.values())


def columns_of(outputs: Outputs, score: Tensor) -> tuple[int, bool]:
    """The number of classes (0: regression), and whether one number tells two of them apart."""
    if not traits(outputs.problem).one_class:
        return 0, False
    sizes = score.shape[1:]
    width = math.prod(size or 0 for size in sizes) or None if score.shape else None
    if width is None and outputs.classes is not None:
        width = len(outputs.classes)
    if width is None:
        raise ModelError(
            f"output {score} does not say how many classes there are; give classes, one name for each in their order"
        )
    return max(width, 2), width == 1


def variable_outputs(model: ModelProto) -> dict[str, str]:
    """The variables that a file written by :func:`compile_graph` gives, and their outputs; empty for other files."""
    for item in model.metadata_props:
        if item.key == METADATA:
            try:
                variables = json.loads(item.value)["variables"]
                return {str(name): str(output) for name, output in variables.items()}
            except (ValueError, KeyError, TypeError, AttributeError) as exc:
                raise ModelError(f"its metadata entry {METADATA!r} cannot be read: {exc}; compile it again") from exc
    return {}


def _variable(graph: MonitorGraph, tensor: str, name: str) -> None:
    floored = graph.nodes.add("Max", [tensor, graph.nodes.constant(FLOOR, np.float32)])
    graph.nodes.output(floored, name, np.float32, ["inputs"])


def _modern(model: ModelProto) -> ModelProto:
    """A copy whose opset has the operators that heads are made of."""
    import onnx

    copy = copied(model)
    opset = next((int(item.version) for item in copy.opset_import if item.domain in ("", "ai.onnx")), None)
    if opset is None:
        copy.opset_import.append(onnx.helper.make_opsetid("", 18))
    elif opset < _OLDEST:
        try:
            copy = onnx.version_converter.convert_version(copy, _CONVERTED)
        except Exception as exc:  # the converter raises whatever its adapters raise
            raise ModelError(
                f"the model is written in opset {opset}, variables need {_OLDEST}, and it cannot be converted: {exc}. "
                f"Export it again with a newer opset."
            ) from exc
    if copy.ir_version < 4:  # before, weights had to be inputs too
        copy.ir_version = _IR
    return copy


def _describe(graph: MonitorGraph, named: Mapping[str, str], reference: Reference | None) -> None:
    contents: dict[str, Json] = {"variables": dict(named)}
    if reference is not None:
        contents |= {"model_hash": reference.model_hash, "layer": reference.layer, "traces": len(reference.traces)}
    for item in list(graph.model.metadata_props):
        if item.key == METADATA:
            graph.model.metadata_props.remove(item)
    entry = graph.model.metadata_props.add()
    entry.key, entry.value = METADATA, json.dumps(contents)

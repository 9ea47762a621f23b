"""The monitor graph: a model's own graph with its auxiliary variables computed beside its outputs."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.scoring.graph_core import PREFIX, Nodes
from opmon.scoring.layers import Layer, find_layer
from opmon.scoring.outputs import Outputs
from opmon.scoring.reference import Reference
from opmon.scoring.session import Tensor
from opmon.scoring.variables import FLOOR

if TYPE_CHECKING:
    from opmon.plugins import Head

METADATA = "opmon"
ACTIVATIONS, PREDICTED = f"{PREFIX}activations", f"{PREFIX}predicted"
UNROLLED_CLASSES = 100
"""Above this many classes the inputs are routed to their class outside of the graph."""
UNKNOWN = 1e30
"""What is so surprising that it cannot be measured, such as a predicted class that training never saw."""
ArrayFunction = Callable[[NDArray[np.float32], NDArray[np.int64]], NDArray[np.floating[Any]]]
_OLDEST, _CONVERTED, _IR = 11, 13, 10


@dataclass(frozen=True, slots=True)
class Route:
    """The inputs of one predicted class: ``rows`` None is all inputs."""

    number: int
    rows: str | None
    activations: str


@dataclass(eq=False)
class MonitorGraph:
    """What a head works on: the tensors of the model that are of use, and ``nodes`` to add its own."""

    nodes: Nodes
    outputs: Outputs
    columns: int
    """How many classes there are; 0 for regression."""
    single: bool = False
    """Whether the model tells two classes apart with one number."""
    layer_name: str | None = None
    given_reference: Reference | None = None
    raw: dict[str, str] = field(default_factory=dict)
    """By the tensor of a variable: the same before it was normalised."""
    _made: dict[Hashable, str] = field(default_factory=dict)

    @property
    def model(self) -> Any:
        return self.nodes.model

    @property
    def reference(self) -> Reference:
        if self.given_reference is None:
            raise ModelError("this variable needs a reference, fitted on training data: opmon reference makes one")
        return self.given_reference

    @property
    def routable(self) -> bool:
        """Whether the classes are few enough for a branch of the graph each."""
        return self.columns <= UNROLLED_CLASSES

    def once(self, key: Hashable, make: Callable[[], str]) -> str:
        """What ``make`` gives, made once for each ``key``: heads that need the same tensor share it."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    @functools.cached_property
    def layer(self) -> Layer:
        fitted = self.given_reference.layer if self.given_reference is not None else None
        return find_layer(self.model, self.outputs.score, self.layer_name or fitted)

    @functools.cached_property
    def input(self) -> str:
        """The model's first input."""
        weights = {tensor.name for tensor in self.model.graph.initializer}
        return next(str(item.name) for item in self.model.graph.input if item.name not in weights)

    @functools.cached_property
    def probabilities(self) -> str:
        """float32 [inputs, classes]."""
        if self.columns == 0:
            raise ModelError(
                "a regression model has no probabilities: confidence, margin, entropy, gini, dsa need them"
            )
        nodes = self.nodes
        score = nodes.cast(nodes.add("Flatten", [self.outputs.score], axis=1), np.float32)
        if self.outputs.meaning == "logits":
            score = nodes.add("Sigmoid", [score]) if self.single else nodes.add("Softmax", [score], axis=1)
        elif self.outputs.meaning == "log_probabilities":
            score = nodes.add("Exp", [score])
        if self.single:
            rest = nodes.add("Sub", [nodes.constant(1.0, np.float32), score])
            score = nodes.add("Concat", [rest, score], axis=1)
        return score

    @functools.cached_property
    def largest(self) -> tuple[str, str]:
        """The two largest probabilities of each input, float32 [inputs]."""
        values, _ = self.nodes.top(self.probabilities, 2)
        first, second = (self.nodes.add("Gather", [values, self.nodes.constant(i, np.int64)], axis=1) for i in (0, 1))
        return first, second

    @functools.cached_property
    def predicted(self) -> str:
        """int64 [inputs]: the column of the greatest probability."""
        return self.nodes.add("ArgMax", [self.probabilities], axis=1, keepdims=0)

    @functools.cached_property
    def activations(self) -> str:
        """float32 [inputs, neurons]: the layer's, averaged over space or tokens where it has several of each."""
        nodes, layer = self.nodes, self.layer
        tensor = nodes.cast(layer.name, np.float32)
        rank = 2 if layer.shape is None else len(layer.shape)
        if rank == 1:
            return nodes.unsqueeze(tensor, [1])
        between = list(range(2, rank)) if layer.channels_first else list(range(1, rank - 1))
        return nodes.reduce("ReduceMean", tensor, between) if between else tensor

    @functools.cached_property
    def routes(self) -> tuple[Route, ...]:
        """The inputs by predicted class, for the classes that have traces; regression has one route for all."""
        if self.columns == 0:
            return (Route(0, None, self.activations),)
        return tuple(self._route(number) for number in self.reference.classes)

    def unrouted(self, values: Mapping[int, str]) -> str:
        """One float32 per input from those of each route; ``UNKNOWN`` where the class has no route."""
        nodes = self.nodes
        if self.routes[0].rows is None:
            return values[self.routes[0].number]
        from onnx import numpy_helper

        blank = numpy_helper.from_array(np.array([UNKNOWN], np.float32))
        empty = nodes.add("ConstantOfShape", [nodes.add("Shape", [self.predicted])], value=blank)
        joined = nodes.add("Concat", [values[route.number] for route in self.routes], axis=0)
        return nodes.add("ScatterElements", [empty, self._order, joined], axis=0)

    def normalised(self, raw: str, limits: tuple[float, float] | None) -> str:
        """A raw value between the reference's ``limits``, as 0 to 1; regression: shifted to begin at 0, without end."""
        result = raw if limits is None else self._between(raw, *limits)
        self.raw[result] = raw
        return result

    def _between(self, raw: str, low: float, high: float) -> str:
        nodes = self.nodes
        shifted = nodes.add("Sub", [raw, nodes.constant(low, np.float32)])
        if self.columns == 0:
            return nodes.clip(shifted, 0.0, UNKNOWN)
        span = nodes.constant(max(high - low, 1e-30), np.float32)
        return nodes.clip(nodes.add("Div", [shifted, span]), 0.0, 1.0)

    @functools.cached_property
    def _order(self) -> str:
        return self.nodes.add("Concat", [str(route.rows) for route in self.routes], axis=0)

    def _route(self, number: int) -> Route:
        nodes = self.nodes
        same = nodes.add("Equal", [self.predicted, nodes.constant(number, np.int64)])
        rows = nodes.squeeze(nodes.add("NonZero", [same]), [0])
        return Route(number, rows, nodes.add("Gather", [self.activations, rows], axis=0))


@dataclass(frozen=True, eq=False)
class Compiled:
    """A model with its variables. ``outside`` are the heads that are computed from its extra outputs, in NumPy."""

    model: Any
    outputs: Mapping[str, str]
    """The output of each variable."""
    outside: tuple[str, ...]


def compile_graph(
    model: Any,
    outputs: Outputs,
    score: Tensor,
    heads: Mapping[str, Head],
    reference: Reference | None = None,
    layer: str | None = None,
    raw: bool = False,
    traced: bool = False,
) -> Compiled:
    """A copy of ``model`` with one output more for each head; its own outputs stay as they are.

    With ``raw`` there are also outputs ``<name>_raw``, before normalisation, of heads that have such. ``traced`` adds
    the activations and the predicted class.
    """
    columns, single = columns_of(outputs, score)
    graph = MonitorGraph(Nodes(_modern(model)), outputs, columns, single, layer, reference)
    if reference is not None and reference.columns != columns:
        raise ModelError(
            f"the reference was fitted for {reference.columns} classes and the model has {columns} (0: regression); "
            f"fit one for this model with opmon reference"
        )
    taken = {item.name for item in graph.model.graph.output}
    named: dict[str, str] = {}
    outside: list[str] = []
    for name, head in heads.items():
        tensor = head.nodes(graph) if hasattr(head, "nodes") else None
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


def serialised(model: Any) -> bytes:
    """The file's bytes; weights in other files stay there."""
    try:
        data: bytes = model.SerializeToString()
    except Exception as exc:  # protobuf's error differs from version to version
        raise ModelError(
            f"the model with its reference is larger than the 2 GB an ONNX file may have ({exc}): fit a smaller "
            f"reference (opmon reference --limit), or keep the weights in a file beside the model"
        ) from exc
    return data


def functions_of(
    compiled: Compiled, heads: Mapping[str, Head], reference: Reference | None
) -> dict[str, ArrayFunction]:
    """The NumPy functions of the heads that are no graph."""
    found: dict[str, ArrayFunction] = {}
    for name in compiled.outside:
        make = getattr(heads[name], "function", None)
        if make is None:
            raise ModelError(
                f"the variable {name!r} gives neither ONNX nodes for this model nor a NumPy function; leave it out"
            )
        found[name] = make(reference)
    return found


def bounded(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """A value that is no number is the most suspicious there is: the input must still be drawn."""
    result: NDArray[np.float32] = np.nan_to_num(values, copy=False, nan=1.0, posinf=UNKNOWN, neginf=0.0)
    return result


def is_added(name: str, variables: Mapping[str, str]) -> bool:
    """Whether an output was added by opmon."""
    return name.startswith(PREFIX) or any(name in (own, f"{own}_raw") for own in variables.values())


def columns_of(outputs: Outputs, score: Tensor) -> tuple[int, bool]:
    """How many classes there are (0: regression), and whether one number tells two of them apart."""
    if outputs.problem == "regression":
        return 0, False
    width = score.shape[1] if len(score.shape) == 2 else 1 if len(score.shape) == 1 else None
    if width is None and outputs.classes is not None:
        width = len(outputs.classes)
    if width is None:
        raise ModelError(
            f"output {score} does not say how many classes there are; give classes, one name for each in their order"
        )
    return max(width, 2), width == 1


def variable_outputs(model: Any) -> dict[str, str]:
    """The variables that a file written by :func:`compile_graph` gives, and their outputs; empty for other files."""
    for item in model.metadata_props:
        if item.key == METADATA:
            try:
                found = json.loads(item.value)["variables"]
                return {str(name): str(output) for name, output in found.items()}
            except (ValueError, KeyError, TypeError, AttributeError) as exc:
                raise ModelError(f"its metadata entry {METADATA!r} cannot be read: {exc}; compile it again") from exc
    return {}


def _variable(graph: MonitorGraph, tensor: str, name: str) -> None:
    floored = graph.nodes.add("Max", [tensor, graph.nodes.constant(FLOOR, np.float32)])
    graph.nodes.output(floored, name, np.float32, ["inputs"])


def _modern(model: Any) -> Any:
    """A copy whose opset has the operators that heads are made of."""
    import onnx

    copy = type(model)()
    copy.CopyFrom(model)
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
    told: dict[str, Any] = {"variables": dict(named)}
    if reference is not None:
        told |= {"model_hash": reference.model_hash, "layer": reference.layer, "traces": len(reference.traces)}
    for item in list(graph.model.metadata_props):
        if item.key == METADATA:
            graph.model.metadata_props.remove(item)
    entry = graph.model.metadata_props.add()
    entry.key, entry.value = METADATA, json.dumps(told)

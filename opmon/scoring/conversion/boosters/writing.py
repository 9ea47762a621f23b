"""Nodes of an ONNX graph that answer as an ensemble of trees, in a graph of their own or inside of another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opmon.scoring.conversion.boosters.ensemble import Ensemble
from opmon.types import Array
from opmon.values import canonical_class

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

TREES_FROM = 3
"""The version of ai.onnx.ml whose trees may take float64."""
OPSET = 18


class Writer(Protocol):
    """Adds nodes and constants to a graph."""

    def name(self, word: str) -> str:
        """A name that is not taken."""
        ...

    def constant(self, values: Array | list[str]) -> str:
        """The name of an array, or of a list of texts."""
        ...

    def node(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **more: Any) -> None: ...


class Own:
    """Nodes and constants of a graph that holds nothing else."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._taken = 0

    def name(self, word: str) -> str:
        self._taken += 1
        return f"{word}_{self._taken}"

    def constant(self, values: Array | list[str]) -> str:
        from onnx import numpy_helper

        name = self.name("constant")
        array = np.array(values, np.object_) if isinstance(values, list) else values
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **more: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, list(inputs), list(outputs), domain=domain, **more))


def graph_of(ensemble: Ensemble, single: bool) -> bytes:
    """A file that takes all numbers as ``X``, and gives a ``value`` or a ``label`` with its ``probabilities``.

    ``single``: the numbers come in float32.
    """
    from onnx import TensorProto, helper

    writer, values, classes = Own(), helper.make_tensor_value_info, ensemble.classes
    taken = values("X", TensorProto.FLOAT if single else TensorProto.DOUBLE, [None, ensemble.features])
    if classes is None:
        write(ensemble, writer, "X", ["value"], single)
        given = [values("value", TensorProto.FLOAT, [None, 1])]
    else:
        write(ensemble, writer, "X", ["label", "probabilities"], single)
        kind = TensorProto.STRING if isinstance(classes[0], str) else TensorProto.INT64
        given = [
            values("label", kind, [None]),
            values("probabilities", TensorProto.FLOAT, [None, len(classes)]),
        ]
    graph = helper.make_graph(writer.nodes, "trees", [taken], given, writer.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES_FROM)]
    model = helper.make_model(graph, ir_version=10, opset_imports=opsets)
    if classes is not None:
        entry = model.metadata_props.add()
        entry.key, entry.value = "classes", json.dumps([canonical_class(name) for name in classes])
    return model.SerializeToString()


def write(ensemble: Ensemble, writer: Writer, taken: str, given: Sequence[str], single: bool) -> None:
    """Add the nodes from ``taken``, a matrix of numbers, to ``given``: a value, or a label and probabilities."""
    from onnx import TensorProto

    double = not (single or ensemble.single)
    numbers, summed = writer.name("numbers"), writer.name("summed")
    writer.node("Cast", [taken], [numbers], to=TensorProto.DOUBLE if double else TensorProto.FLOAT)
    writer.node("TreeEnsembleRegressor", [numbers], [summed], "ai.onnx.ml", **ensemble.attributes(double))
    if ensemble.classes is None:
        _value(ensemble, writer, summed, given[0])
    else:
        _classes(ensemble, writer, summed, *given)


def _value(ensemble: Ensemble, writer: Writer, summed: str, given: str) -> None:
    match ensemble.link:
        case "exp":
            writer.node("Exp", [summed], [given])
        case "log1p_exp":
            writer.node("Softplus", [summed], [given])
        case "square":
            size, square = writer.name("size"), writer.name("square")
            writer.node("Abs", [summed], [size])
            writer.node("Mul", [summed, size], [square])
            writer.node("Identity", [square], [given])
        case "share":  # a number, and no class: which a sigmoid at the end would say
            share = writer.name("share")
            writer.node("Sigmoid", [summed], [share])
            limits = [writer.constant(np.array(limit, np.float32)) for limit in (0.0, 1.0)]
            writer.node("Clip", [share, *limits], [given])
        case _:
            writer.node("Identity", [summed], [given])


def _classes(ensemble: Ensemble, writer: Writer, summed: str, label: str, probabilities: str) -> None:
    match ensemble.link:
        case "sigmoid":
            second, first, one = writer.name("second"), writer.name("first"), writer.constant(np.ones(1, np.float32))
            writer.node("Sigmoid", [summed], [second])
            writer.node("Sub", [one, second], [first])
            writer.node("Concat", [first, second], [probabilities], axis=1)
        case "each":
            writer.node("Sigmoid", [summed], [probabilities])
        case _:
            writer.node("Softmax", [summed], [probabilities], axis=1)
    texts = [name for name in ensemble.classes or () if isinstance(name, str)]
    names = writer.constant(texts or np.array(ensemble.classes, np.int64))
    place = writer.name("place")
    writer.node("ArgMax", [probabilities], [place], axis=1, keepdims=0)
    writer.node("Gather", [names, place], [label])

"""ONNX files as somebody writes them who wants to harm whoever loads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import (
    AttributeProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

FLOAT, NUMBER, FLAG = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
NODES = Sequence[NodeProto]
Weights = Sequence[TensorProto]
WEIGHTS = numpy_helper.from_array(np.ones((6, 4), np.float32), "w")


def constant(name: str, value: object, kind: type = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(value, kind), name)


def written(nodes: NODES, weights: Weights = (WEIGHTS,), **more: Any) -> bytes:
    """A model from x, rows of six numbers, to y, the probabilities that come of z, rows of four."""
    given = [helper.make_tensor_value_info("x", FLOAT, ["n", 6])]
    told = [helper.make_tensor_value_info("y", FLOAT, ["n", 4])]
    graph = helper.make_graph([*nodes, helper.make_node("Softmax", ["z"], ["y"])], "g", given, told, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, **more)
    return bytes(model.SerializeToString())


def outside(location: str, name: str = "w", length: str = "96") -> TensorProto:
    """Weights that are said to be in another file."""
    tensor = TensorProto(name=name, data_type=FLOAT, dims=[6, 4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", length)):
        tensor.external_data.add(key=key, value=value)
    return tensor


PRODUCT = helper.make_node("MatMul", ["x", "w"], ["z"])
SCORES = helper.make_node("MatMul", ["x", "w"], ["a"])


def in_an_attribute(location: str) -> bytes:
    return written([helper.make_node("Constant", [], ["w"], value=outside(location)), PRODUCT], ())


def in_a_sparse_attribute(location: str) -> bytes:
    values = outside(location, "v")
    values.dims[:] = [24]
    sparse = SparseTensorProto(values=values, indices=constant("i", range(24)), dims=[6, 4])
    node = helper.make_node("Constant", [], ["w"])
    node.attribute.add(name="sparse_value", type=AttributeProto.SPARSE_TENSOR).sparse_tensor.CopyFrom(sparse)
    return written([node, PRODUCT], ())


def in_a_branch(location: str) -> bytes:
    value = helper.make_tensor_value_info("b", FLOAT, [6, 4])
    branch = helper.make_graph([helper.make_node("Identity", ["w"], ["b"])], "b", [], [value], [outside(location)])
    chosen = helper.make_node("If", ["t"], ["w2"], then_branch=branch, else_branch=branch)
    return written([chosen, helper.make_node("MatMul", ["x", "w2"], ["z"])], [constant("t", True, np.bool_)])


def in_training(location: str) -> bytes:
    model = onnx.load_from_string(written([PRODUCT]))
    model.training_info.add().initialization.initializer.append(outside(location))
    return bytes(model.SerializeToString())


PLACES: Mapping[str, Callable[[str], bytes]] = {
    "the graph": lambda location: written([PRODUCT], [outside(location)]),
    "an attribute": in_an_attribute,
    "a sparse attribute": in_a_sparse_attribute,
    "a branch": in_a_branch,
    "training": in_training,
}
"""Where a graph can name another file."""


TURNS = (constant("m", 1 << 62), constant("t", True, np.bool_))
"""How often a loop goes round: without end."""


def endless() -> bytes:
    """A loop that goes round 2⁶² times."""
    loop = looped("a", "z", FLOAT, [helper.make_node("Identity", ["v"], ["v2"])])
    return written([SCORES, loop], [WEIGHTS, *TURNS])


def looped(first: str, last: str, kind: int | TypeProto, step: NODES, *more: str, weights: Weights = ()) -> NodeProto:
    """A loop that makes ``v2`` of ``v``, beginning with ``first``; ``more`` of each turn is gathered in ``all``."""

    def value(name: str) -> ValueInfoProto:
        if isinstance(kind, TypeProto):
            return helper.make_value_info(name, kind)
        return helper.make_tensor_value_info(name, kind, None)

    flags = [helper.make_tensor_value_info(name, FLAG, []) for name in ("c", "c2")]
    given = [helper.make_tensor_value_info("i", NUMBER, []), flags[0], value("v")]
    told = [flags[1], value("v2"), *(helper.make_tensor_value_info(name, FLOAT, None) for name in more)]
    nodes = [helper.make_node("Identity", ["c"], ["c2"]), *step]
    body = helper.make_graph(nodes, "b", given, told, list(weights))
    return helper.make_node("Loop", ["m", "t", first], [last, *(["all"] if more else [])], body=body)


def summed(nodes: NODES, much: str, weights: Weights = ()) -> bytes:
    """A model that answers with its scores and the sum of what it has made."""
    total = helper.make_node("ReduceSum", [much], ["r"], keepdims=0)
    return written([SCORES, *nodes, total, helper.make_node("Add", ["a", "r"], ["z"])], [WEIGHTS, *TURNS, *weights])


MEGABYTES = constant("w2", np.ones(1 << 20), np.float32)


def doubled() -> bytes:
    """A loop of which each turn makes twice as much as the one before."""
    step = [helper.make_node("Concat", ["v", "v"], ["v2"], axis=0)]
    return summed([looped("a", "big", FLOAT, step)], "big")


def gathered() -> bytes:
    """A loop that keeps some megabytes of each of its turns."""
    step = [helper.make_node("Identity", ["v"], ["v2"]), helper.make_node("Identity", ["w2"], ["o"])]
    return summed([looped("a", "last", FLOAT, step, "o", weights=[MEGABYTES])], "all")


def in_a_sequence() -> bytes:
    """A loop that puts more into a sequence at each of its turns."""
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    step = [helper.make_node("SequenceInsert", ["v", "w2"], ["v2"])]
    nodes = [
        helper.make_node("SequenceEmpty", [], ["none"], dtype=FLOAT),
        looped("none", "many", kind, step, weights=[MEGABYTES]),
        helper.make_node("ConcatFromSequence", ["many"], ["big"], axis=0),
    ]
    return summed(nodes, "big")


def of_text() -> bytes:
    """A loop that makes a text twice as long at each of its turns."""
    text = helper.make_tensor("text", TensorProto.STRING, [1], [b"abcdefgh" * 1000])
    step = [helper.make_node("StringConcat", ["v", "v"], ["v2"])]
    nodes = [looped("text", "long", TensorProto.STRING, step), helper.make_node("Shape", ["long"], ["s"])]
    model = onnx.load_from_string(summed([*nodes, helper.make_node("Cast", ["s"], ["big"], to=FLOAT)], "big", [text]))
    model.opset_import[0].version = 20
    return bytes(model.SerializeToString())


def by_its_input(operator: str) -> bytes:
    """As many numbers as a value of the input says, and 2³² times as many."""
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Mul", ["most", "times"], ["f"]),
        helper.make_node("Cast", ["f"], ["count"], to=NUMBER),
        helper.make_node("Reshape", ["count", "one"], ["s"]),
        helper.make_node(operator, ["s"] if operator == "ConstantOfShape" else ["half", "s"], ["big"]),
    ]
    weights = [constant("times", 2.0**32, np.float32), constant("one", [1]), constant("half", [0.5], np.float32)]
    return summed(nodes, "big", weights)


def in_texts() -> bytes:
    """Many numbers as texts, each of which is a thing of its own."""
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["zeros"]),
        helper.make_node("Cast", ["zeros"], ["texts"], to=TensorProto.STRING),
        helper.make_node("Cast", ["texts"], ["big"], to=FLOAT),
    ]
    return summed(nodes, "big", [constant("s", [1 << 28])])


def giant(shape: Sequence[int]) -> bytes:
    """A constant of so many numbers, which a few bytes ask for."""
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["big"]),
        helper.make_node("ReduceSum", ["big"], ["r"], keepdims=0),
        SCORES,
        helper.make_node("Add", ["a", "r"], ["z"]),
    ]
    return written(nodes, [WEIGHTS, constant("s", shape)])


def claimed(dims: Sequence[int]) -> bytes:
    """Weights that are said to be larger than what is there."""
    return written([PRODUCT], [TensorProto(name="w", data_type=FLOAT, dims=dims, raw_data=b"\0" * 96)])


def deep(levels: int) -> bytes:
    """Graphs inside of graphs, as bytes: the library that writes them refuses to."""

    def wrapped(tag: int, content: bytes) -> bytes:
        size, count = b"", len(content)
        while count > 127:
            size, count = size + bytes([count & 127 | 128]), count >> 7
        return bytes([tag << 3 | 2]) + size + bytes([count]) + content

    graph = b""
    for _ in range(levels):
        graph = wrapped(1, wrapped(5, wrapped(6, graph)))  # GraphProto.node, NodeProto.attribute, AttributeProto.g
    return b"\x08\x08" + wrapped(7, graph + wrapped(12, b"\x0a\x01y"))


def saved(folder: Path, content: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return path

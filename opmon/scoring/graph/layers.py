"""The layers of a model whose activations can be traced, and which of them is the last hidden one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opmon.errors import ModelError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_DENSE = frozenset({"Gemm", "MatMul"})
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_WEIGHTED = _DENSE | _CONVOLUTIONS | {"LSTM", "GRU", "RNN"}


@dataclass(frozen=True, slots=True)
class Layer:
    """An activation of a model: the tensor ``name``, which the weighted operator ``feeds`` takes.

    ``shape`` is that of the whole tensor, the batch first, where it is known; None is a size that is not.
    """

    name: str
    made_by: str
    feeds: str
    shape: tuple[int | None, ...] | None
    channels_first: bool = False
    """Whether values of one neuron lie along the axes after the second (a convolution) or before the last."""

    @property
    def width(self) -> int | None:
        """The number of neurons."""
        if self.shape is None or len(self.shape) < 2:
            return None
        return self.shape[1] if self.channels_first else self.shape[-1]

    def __str__(self) -> str:
        shape = "?" if self.shape is None else ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.name} [{shape}] (of {self.made_by}, into {self.feeds})"


def layers(model: ModelProto, score: str) -> tuple[Layer, ...]:
    """The hidden layers on the way to the output ``score``, first to last; empty where the model has none.

    A hidden layer is what a Gemm, MatMul or Conv with constant weights takes, where weights came before it; the last
    hidden layer is what the last Gemm or MatMul takes.
    """
    graph = _Graph.of(model)
    hidden: list[Layer] = []
    for node in graph.ancestors(score):
        if node.op_type not in _DENSE | _CONVOLUTIONS or not any(name in graph.constants for name in node.input[1:2]):
            continue
        name = node.input[0]
        if graph.is_hidden(name) and all(layer.name != name for layer in hidden):
            hidden.append(graph.layer(name, node.op_type))
    return tuple(hidden)


def find_layer(model: ModelProto, score: str, name: str | None = None) -> Layer:
    """The layer called ``name``, or the last hidden one."""
    if name is not None:
        return _named(model, score, name)
    dense = [layer for layer in layers(model, score) if layer.feeds in _DENSE]
    if not dense:
        kinds = sorted({node.op_type for node in model.graph.node})
        raise ModelError(
            f"the model has no hidden layer that is found by itself (it is made of {', '.join(kinds[:12])}): dsa, lsa "
            f"and combined, and the sampler ces, need one. confidence, margin, entropy and gini do not; sae and vae "
            f"look at the inputs. A network's layer can be named: opmon layers lists them."
        )
    return dense[-1]


def _named(model: ModelProto, score: str, name: str) -> Layer:
    graph = _Graph.of(model)
    if name in graph.made_by and name not in graph.constants:
        node = next((n for n in model.graph.node if n.op_type in _WEIGHTED and name in n.input), None)
        return graph.layer(name, node.op_type if node is not None else "–")
    known = ", ".join(layer.name for layer in layers(model, score)[-10:]) or "none"
    raise ModelError(f"the model has no layer {name!r}; the last of its hidden layers are: {known}")


@dataclass(frozen=True)
class _Graph:
    made_by: Mapping[str, NodeProto]
    """By tensor, the node that computes it."""
    constants: frozenset[str]
    weighted: frozenset[str]
    """Tensors with weights behind them."""
    shapes: Mapping[str, tuple[int | None, ...]]
    nodes: tuple[NodeProto, ...]

    @classmethod
    def of(cls, model: ModelProto) -> _Graph:
        nodes = tuple(model.graph.node)  # ONNX keeps them in topological order
        constants = {tensor.name for tensor in model.graph.initializer}
        constants |= {tensor.values.name for tensor in model.graph.sparse_initializer}
        weighted: set[str] = set()
        for node in nodes:
            given = [name for name in node.input if name]
            if all(name in constants for name in given) and not _has_graphs(node):
                constants |= set(node.output)
            elif node.op_type in _WEIGHTED or any(name in weighted for name in given):
                weighted |= set(node.output)
        made_by = {name: node for node in nodes for name in node.output}
        return cls(made_by, frozenset(constants), frozenset(weighted), shapes_of(model), nodes)

    def ancestors(self, tensor: str) -> list[NodeProto]:
        """The nodes that ``tensor`` is computed with, first to last."""
        wanted, behind = {tensor}, []
        for node in reversed(self.nodes):
            if any(name in wanted for name in node.output):
                wanted |= set(node.input)
                behind.append(node)
        return behind[::-1]

    def is_hidden(self, tensor: str) -> bool:
        return tensor in self.weighted and tensor not in self.constants

    def layer(self, name: str, feeds: str) -> Layer:
        shape = self.shapes.get(name)
        spatial = self._from_convolution(name) and (shape is None or len(shape) != 2)
        return Layer(name, self.made_by[name].op_type, feeds, shape, spatial)

    def _from_convolution(self, name: str) -> bool:
        """Whether the nearest weighted operator behind a tensor is a convolution, with no change of layout between."""
        node = self.made_by.get(name)
        while node is not None and node.op_type not in _WEIGHTED:
            if node.op_type in ("Flatten", "Reshape", "Transpose"):
                return False
            node = next((self.made_by[i] for i in node.input if i in self.made_by and i not in self.constants), None)
        return node is not None and node.op_type in _CONVOLUTIONS


def _has_graphs(node: NodeProto) -> bool:
    return any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)


def shapes_of(model: ModelProto) -> dict[str, tuple[int | None, ...]]:
    """The shapes of tensors, from the file or shape inference; fewer where inference fails. None: an unknown size."""
    import onnx

    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001 - a custom operator, a model above 2 GB: no shapes then
        inferred = model
    shapes: dict[str, tuple[int | None, ...]] = {}
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
            sizes = value.type.tensor_type.shape.dim
            shapes[value.name] = tuple(size.dim_value if size.HasField("dim_value") else None for size in sizes)
    return shapes

"""The monitor graph: a model's own graph with its auxiliary variables computed beside its outputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opmon.errors import ModelError
from opmon.scoring.graph_core import PREFIX, Nodes
from opmon.scoring.layers import Layer, find_layer
from opmon.scoring.outputs import Outputs
from opmon.scoring.reference import Reference

ACTIVATIONS, PREDICTED = f"{PREFIX}activations", f"{PREFIX}predicted"
UNROLLED_CLASSES = 100
"""Above this many classes the inputs are routed to their class outside of the graph."""
UNKNOWN = 1e30
"""What is so surprising that it cannot be measured, such as a predicted class that training never saw."""


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

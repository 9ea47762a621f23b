"""The monitor graph: a model's own graph with its auxiliary variables computed beside its outputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from opmon.errors import ModelError
from opmon.scoring.graph.layers import Layer, find_layer
from opmon.scoring.graph.nodes import PREFIX, Nodes
from opmon.scoring.graph.routes import local_numbers, together
from opmon.scoring.outputs.meaning import Outputs
from opmon.scoring.outputs.variables import EDGE
from opmon.scoring.reference.densities import has_covariance, kept_neurons
from opmon.scoring.reference.fitted import Reference, required
from opmon.types import Array

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

ACTIVATIONS, PREDICTED = f"{PREFIX}activations", f"{PREFIX}predicted"
FEW_CLASSES = 100
"""With more classes than this, what is scored in large batches is quicker sorted by class outside of the graph."""
UNKNOWN = 1e30
"""The value of what is too surprising to be measured, such as a predicted class that training never saw."""


@dataclass(frozen=True, slots=True)
class Route:
    """The inputs that are predicted as one of ``classes``; ``rows`` is None for all inputs."""

    classes: tuple[int, ...]
    rows: str | None


@dataclass(eq=False)
class MonitorGraph:
    """The graph that heads are added to: the model's tensors that they need, and ``nodes`` to add their own."""

    nodes: Nodes
    outputs: Outputs
    columns: int
    """The number of classes; 0 for regression."""
    single: bool = False
    """Whether the model tells two classes apart with one number."""
    layer_name: str | None = None
    given_reference: Reference | None = None
    whole: bool = False
    """Whether everything must be in the graph, also what would be quicker outside of it."""
    raw: dict[str, str] = field(default_factory=dict)
    """The tensors of variables before normalisation, by those after it."""
    _made: dict[Hashable, str] = field(default_factory=dict)

    @property
    def model(self) -> ModelProto:
        return self.nodes.model

    @property
    def reference(self) -> Reference:
        return required(self.given_reference)

    def learned(self, name: str) -> Mapping[str, Array]:
        """The arrays that the variables ``fitted_as`` this name learned from the training data."""
        weights = self.reference.weights.get(name)
        if weights is None:
            raise ModelError(f"the reference has no {name}: fit it with opmon reference --fit {name}")
        return weights

    @property
    def sorted_outside(self) -> bool:
        """Whether a head that can be either had better be a NumPy function: see ``FEW_CLASSES``."""
        return self.columns > FEW_CLASSES and not self.whole

    def once(self, key: Hashable, make: Callable[[], str]) -> str:
        """The tensor that ``make`` gives, made once for each ``key``: heads that need the same one share it."""
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
        """The probabilities of the classes, float32 [inputs, classes]."""
        if self.columns == 0:
            raise ModelError(
                "a regression model has no probabilities: confidence, margin, entropy, gini, dsa need them"
            )
        nodes = self.nodes
        score = nodes.cast(nodes.add("Flatten", [self.outputs.score], axis=1), np.float32)
        if self.outputs.reversed:
            score = nodes.add("Gather", [score, nodes.constant([1, 0], np.int64)], axis=1)
        if self.outputs.meaning == "logits":
            score = nodes.add("Sigmoid", [score]) if self.single else nodes.add("Softmax", [score], axis=1)
        elif self.outputs.meaning == "log_probabilities":
            score = nodes.add("Exp", [score])
        elif self.outputs.meaning == "independent" and not self.single:
            kept = nodes.clip(score, EDGE, 1 - EDGE)
            odds = nodes.add("Div", [kept, nodes.add("Sub", [nodes.constant(1.0, np.float32), kept])])
            score = nodes.add("Div", [odds, nodes.reduce("ReduceSum", odds, [1], keep=True)])
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
        """The column of the greatest probability, int64 [inputs]."""
        return self.nodes.add("ArgMax", [self.probabilities], axis=1, keepdims=0)

    @functools.cached_property
    def activations(self) -> str:
        """The layer's activations, averaged over space or tokens where there are several: float32 [inputs, neurons]."""
        nodes, layer = self.nodes, self.layer
        tensor = nodes.cast(layer.name, np.float32)
        rank = 2 if layer.shape is None else len(layer.shape)
        if rank == 1:
            return nodes.unsqueeze(tensor, [1])
        between = list(range(2, rank)) if layer.channels_first else list(range(1, rank - 1))
        return nodes.reduce("ReduceMean", tensor, between) if between else tensor

    @functools.cached_property
    def extended(self) -> str:
        """The activations with a column of ones: what a product adds to all inputs is a row of its matrix then."""
        nodes = self.nodes
        one = nodes.add("Slice", [self.activations, *(nodes.constant([i], np.int64) for i in (0, 1, 1))])
        ones = nodes.add("ConstantOfShape", [nodes.add("Shape", [one])], value=_tensor(1.0))
        return nodes.add("Concat", [self.activations, ones], axis=1)

    @functools.cached_property
    def routes(self) -> tuple[Route, ...]:
        """The inputs by predicted class, small classes together, for classes with traces; regression: one for all.

        :meth:`unrouted` puts the values of a route's inputs back in the order of all inputs.
        """
        if self.columns == 0:
            return (Route((0,), None),)
        nodes = self.nodes
        sets = self._sets()
        which, number = local_numbers(sets, self.columns)
        self._made["number"] = nodes.add("Gather", [nodes.constant(number), self.predicted])
        own = nodes.add("Gather", [nodes.constant(which), self.predicted])
        routes = []
        for i, classes in enumerate(sets):
            same = nodes.add("Equal", [own, nodes.constant(i, np.int64)])
            routes.append(Route(classes, nodes.squeeze(nodes.add("NonZero", [same]), [0])))
        return tuple(routes)

    def routed(self, route: Route, tensor: str) -> str:
        """The rows of a tensor that belong to the inputs of a route."""
        rows = route.rows
        if rows is None:
            return tensor
        return self.once((rows, tensor), lambda: self.nodes.add("Gather", [tensor, rows], axis=0))

    def numbers(self, route: Route) -> str:
        """The class that each of the route's inputs is predicted as, by its number in the route, int64."""
        return self.routed(route, self._made["number"])

    def rows(self, routes: Sequence[Route]) -> str:
        """The inputs of several routes, one after the other."""
        rows = [str(route.rows) for route in routes]
        return self.once(("rows", *rows), lambda: self.nodes.add("Concat", rows, axis=0))

    def unrouted(self, routes: Sequence[Route], values: str, dtype: DTypeLike = np.float32) -> str:
        """One value per input from those of the routes' inputs; ``UNKNOWN`` where the class has no route."""
        nodes = self.nodes
        if routes[0].rows is None:
            return values
        shape = nodes.add("Shape", [self.predicted])
        empty = nodes.add("ConstantOfShape", [shape], value=_tensor(UNKNOWN, dtype))
        return nodes.add("ScatterElements", [empty, self.rows(routes), values], axis=0)

    def normalised(self, raw: str, limits: tuple[float, float] | None) -> str:
        """A raw value between the reference's ``limits``, as 0 to 1; regression: shifted to begin at 0, without end."""
        result = raw if limits is None else self._between(raw, *limits)
        self.raw[result] = raw
        return result

    def _sets(self) -> list[tuple[int, ...]]:
        """Sets of classes that go together: those with a covariance of their own, and those without."""
        sizes = {number: len(self.reference.of_class(number)) for number in self.reference.classes}
        neurons = int(kept_neurons(self.reference).sum())
        many = {number: size for number, size in sizes.items() if has_covariance(size, neurons)}
        return together({number: size for number, size in sizes.items() if number not in many}) + together(many)

    def _between(self, raw: str, low: float, high: float) -> str:
        nodes = self.nodes
        shifted = nodes.add("Sub", [raw, nodes.constant(low, np.float32)])
        if self.columns == 0:
            return nodes.clip(shifted, 0.0, UNKNOWN)
        span = nodes.constant(max(high - low, 1e-30), np.float32)
        return nodes.clip(nodes.add("Div", [shifted, span]), 0.0, 1.0)


def _tensor(value: float, dtype: DTypeLike = np.float32) -> TensorProto:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array([value], dtype))

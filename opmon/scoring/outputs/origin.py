"""The origin of the values of a label output, found back through the graph at the node that chose the class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opmon.scoring.graph.file import PASSING, classifier_labels
from opmon.values import canonical_class

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

_COMPARISONS = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Not", "And", "Or", "Xor"})
_KEYS = ("keys_strings", "keys_int64s", "keys_floats", "keys_tensor")
_VALUES = ("values_strings", "values_int64s", "values_floats", "values_tensor")


@dataclass(frozen=True, slots=True)
class Origin:
    """The values of a label output: the ``names`` of the classes by column, or, if None, the numbers of the columns."""

    names: tuple[str, ...] | None


def origin_of(model: ModelProto, output: str) -> Origin | None:
    """The values that a label output gives according to the graph; None where it does not tell."""
    return _Trace({name: node for node in model.graph.node for name in node.output}, _constants(model)).of(output)


@dataclass(frozen=True)
class _Trace:
    made_by: Mapping[str, NodeProto]
    constants: Mapping[str, TensorProto]

    def of(self, tensor: str) -> Origin | None:
        node = self.made_by.get(tensor)
        if node is None:
            return None
        kind = node.op_type
        if kind in PASSING or kind == "Slice":
            return self.of(node.input[0])
        if kind == "ArgMax" or kind in _COMPARISONS or (kind == "TopK" and tensor == node.output[1]):
            return Origin(None)
        if kind in ("Gather", "ArrayFeatureExtractor"):
            return self._looked_up(node)
        if kind == "LabelEncoder":
            return self._translated(node)
        own = classifier_labels(node)
        return Origin(own) if own and tensor == node.output[0] else None

    def _looked_up(self, node: NodeProto) -> Origin | None:
        """A constant list of names, read at the number of a column; or one of the numbers themselves."""
        names = self._names(node.input[0])
        if names is None:
            return self.of(node.input[0]) if node.input[1] in self.constants else None
        at = self.of(node.input[1])
        if at is None or at.names is None:
            return None if at is None else Origin(names)
        numbers = [int(name) for name in at.names if name.isdigit() and int(name) < len(names)]
        return Origin(tuple(names[number] for number in numbers)) if len(numbers) == len(at.names) else None

    def _translated(self, node: NodeProto) -> Origin | None:
        """Names that stand for other names, or for numbers of columns."""
        before, keys, values = self.of(node.input[0]), _listed(node, _KEYS), _listed(node, _VALUES)
        if before is None or len(keys) != len(values) or not keys:
            return None
        value_of = dict(zip(keys, values, strict=True))
        asked = before.names or tuple(str(number) for number in range(len(keys)))
        return Origin(tuple(value_of[name] for name in asked)) if all(name in value_of for name in asked) else None

    def _names(self, tensor: str) -> tuple[str, ...] | None:
        from onnx import numpy_helper

        constant = self.constants.get(tensor)
        if constant is None or constant.data_location == constant.EXTERNAL:
            return None
        values = numpy_helper.to_array(constant).reshape(-1).tolist()
        return tuple(canonical_class(value) for value in values) if all(map(_may_be_a_name, values)) else None


def _may_be_a_name(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, str | bytes) and bool(value.strip()))


def _constants(model: ModelProto) -> dict[str, TensorProto]:
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            constants.update((node.output[0], item.t) for item in node.attribute if item.name == "value")
    return constants


def _listed(node: NodeProto, names: Sequence[str]) -> list[str]:
    """The values of the first attribute of a node that has one of the ``names``."""
    from onnx import numpy_helper

    for item in node.attribute:
        if item.name in names:
            plain: list[bytes | int | float] = list(item.strings) or list(item.ints) or list(item.floats)
            return [canonical_class(value) for value in plain or numpy_helper.to_array(item.t).reshape(-1).tolist()]
    return []

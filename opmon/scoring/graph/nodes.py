"""Nodes added to a model's graph, written for the opset of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from opmon.types import Array

if TYPE_CHECKING:
    from onnx import ModelProto

PREFIX = "opmon/"
_AXES_ARE_INPUTS = {"Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13}
_REDUCTIONS_CHANGED = 18
_Key = tuple[str, tuple[int, ...], bytes]
"""The dtype, shape and bytes of a constant."""


@dataclass
class Nodes:
    """A copy of a graph, and the nodes added to it: they are named ``opmon/…`` and leave the rest as it is."""

    model: ModelProto
    _constants: dict[_Key, str] = field(default_factory=dict)
    _count: int = 0

    @property
    def opset(self) -> int:
        return next(int(item.version) for item in self.model.opset_import if item.domain in ("", "ai.onnx"))

    def add(self, operator: str, inputs: Sequence[str], name: str | None = None, **attributes: Any) -> str:
        """One node with one output, whose name is returned."""
        return self.add_many(operator, inputs, 1, name, **attributes)[0]

    def add_many(
        self, operator: str, inputs: Sequence[str], outputs: int, name: str | None = None, **attributes: Any
    ) -> list[str]:
        from onnx import helper

        self._count += 1
        own = name or f"{PREFIX}{operator}_{self._count}"
        names = [own if i == 0 else f"{own}_{i}" for i in range(outputs)]
        self.model.graph.node.append(helper.make_node(operator, list(inputs), names, name=own, **attributes))
        return names

    def constant(self, values: ArrayLike, dtype: DTypeLike | None = None) -> str:
        """A constant tensor; the same small one is kept once."""
        from onnx import numpy_helper

        array = np.asarray(values, dtype)  # np.ascontiguousarray would make a vector of a scalar
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 16 else None
        if key is not None and key in self._constants:
            return self._constants[key]
        self._count += 1
        name = f"{PREFIX}constant_{self._count}"
        self.model.graph.initializer.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        if key is not None:
            self._constants[key] = name
        return name

    def cast(self, tensor: str, dtype: DTypeLike) -> str:
        from onnx import helper

        return self.add("Cast", [tensor], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reduce(self, operator: str, tensor: str, axes: Sequence[int], keep: bool = False) -> str:
        """A reduction over ``axes``: an attribute or an input, as the opset has it."""
        return self._with_axes(operator, tensor, axes, keepdims=int(keep))

    def squeeze(self, tensor: str, axes: Sequence[int]) -> str:
        return self._with_axes("Squeeze", tensor, axes)

    def unsqueeze(self, tensor: str, axes: Sequence[int]) -> str:
        return self._with_axes("Unsqueeze", tensor, axes)

    def clip(self, tensor: str, low: float, high: float, dtype: DTypeLike = np.float32) -> str:
        least, most = self.constant(low, dtype), self.constant(high, dtype)
        if self.opset < 12:  # Clip took float32 only
            return self.add("Min", [self.add("Max", [tensor, least]), most])
        return self.add("Clip", [tensor, least, most])

    def top(self, tensor: str, count: int) -> tuple[str, str]:
        """The ``count`` largest of each row, largest first, and where they are."""
        values, positions = self.add_many("TopK", [tensor, self.constant([count], np.int64)], 2, axis=1)
        return values, positions

    def transposed_product(self, tensor: str, matrix: Array, bias: Array) -> str:
        """``tensor @ matrixᵀ + bias``, in one Gemm."""
        return self.add("Gemm", [tensor, self.constant(np.ascontiguousarray(matrix.T)), self.constant(bias[None, :])])

    def output(self, tensor: str, name: str, dtype: DTypeLike, shape: Sequence[str | int | None]) -> None:
        """Make ``tensor`` an output of the graph, called ``name``."""
        from onnx import helper

        self.model.graph.node.append(helper.make_node("Identity", [tensor], [name], name=f"{PREFIX}output/{name}"))
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.model.graph.output.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def _with_axes(self, operator: str, tensor: str, axes: Sequence[int], **attributes: Any) -> str:
        if self.opset >= _AXES_ARE_INPUTS.get(operator, _REDUCTIONS_CHANGED):
            return self.add(operator, [tensor, self.constant(list(axes), np.int64)], **attributes)
        return self.add(operator, [tensor], axes=list(axes), **attributes)

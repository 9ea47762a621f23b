"""Changes to a model's graph without which this machine cannot run it; its answers stay the same."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from opmon.scoring.graph.file import class_names, classifier_labels, copied
from opmon.scoring.graph.locales import another_locale, locale_is_there, locales_of, set_locale

if TYPE_CHECKING:
    from onnx import ModelProto

Change: TypeAlias = "Callable[[ModelProto], None]"


def adapted(model: ModelProto) -> ModelProto | None:
    """A copy with the changes, None where none are needed.

    Probabilities come as a matrix instead of one dictionary for each row (ZipMap), text is put in lower case by the
    rules of a locale that is there, and labels in one row are one for each input.
    """
    changes = [*_zipmaps(model), *_locales(model), *_rows(model)]
    if not changes:
        return None
    copy = copied(model)
    for change in changes:
        change(copy)
    return copy


def _zipmaps(model: ModelProto) -> Iterator[Change]:
    outputs = {output.name for output in model.graph.output}
    for place, node in enumerate(model.graph.node):
        if node.op_type == "ZipMap" and node.output[0] in outputs:
            yield functools.partial(_without_zipmap, place)


def _without_zipmap(place: int, model: ModelProto) -> None:
    import onnx

    node = model.graph.node[place]
    labels, given, name = classifier_labels(node), node.input[0], node.output[0]
    kind = _kind_of(model, given)
    node.CopyFrom(onnx.helper.make_node("Identity", [given], [name], name=node.name))
    output = next(item for item in model.graph.output if item.name == name)
    output.CopyFrom(onnx.helper.make_tensor_value_info(name, kind, [None, None]))
    if labels and class_names(model) is None:
        entry = model.metadata_props.add()
        entry.key, entry.value = "classes", json.dumps(labels)


def _kind_of(model: ModelProto, tensor: str) -> int:
    """The type of a tensor inside of the graph; float where it is not known."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model).graph.value_info
    kinds = {item.name: int(item.type.tensor_type.elem_type) for item in inferred}
    return kinds.get(tensor) or int(onnx.TensorProto.FLOAT)


def _locales(model: ModelProto) -> Iterator[Change]:
    for name in sorted(locales_of(model)):
        if not locale_is_there(name):
            yield functools.partial(set_locale, name, another_locale(name))


def _rows(model: ModelProto) -> Iterator[Change]:
    import onnx

    for output in model.graph.output:
        kind, shape = output.type.tensor_type.elem_type, output.type.tensor_type.shape.dim
        labels = kind in (onnx.TensorProto.INT64, onnx.TensorProto.STRING)
        if labels and len(shape) == 2 and shape[0].dim_value == 1 and not shape[1].dim_value:
            yield functools.partial(_one_for_each_input, output.name)


def _one_for_each_input(name: str, model: ModelProto) -> None:
    import onnx

    row = f"{name}/row"
    for node in model.graph.node:
        node.output[:] = [row if item == name else item for item in node.output]
        node.input[:] = [row if item == name else item for item in node.input]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1]), f"{name}/shape"))
    model.graph.node.append(onnx.helper.make_node("Reshape", [row, f"{name}/shape"], [name], name=f"{name}/reshape"))
    output = next(item for item in model.graph.output if item.name == name)
    output.CopyFrom(onnx.helper.make_tensor_value_info(name, output.type.tensor_type.elem_type, [None]))

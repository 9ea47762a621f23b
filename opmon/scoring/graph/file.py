"""Reading an ONNX file before it is run: what it is made of, and whether it is safe to load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from opmon.errors import ModelError
from opmon.values import canonical_class

_PASSING = frozenset({"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Dropout"})
_LABEL_ATTRIBUTES = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")


def read_model(path: Path) -> Any:
    """The model's graph, without the weights that are kept in other files; those must be in the model's folder."""
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except FileNotFoundError as exc:
        raise ModelError(f"there is no file {path}") from exc
    except Exception as exc:  # protobuf's errors differ from version to version
        raise ModelError(f"{path} is not an ONNX file: {exc}") from exc
    if not model.graph.output:
        raise ModelError(f"{path} is not an ONNX file with a model in it: its graph has no outputs")
    for location in external_files(model):
        _require_inside(path.parent, location)
    return model


def external_files(model: Any) -> set[str]:
    """The names of the files that hold weights."""
    found = set()
    for tensor in _tensors(model):
        if tensor.data_location == tensor.EXTERNAL:
            found |= {entry.value for entry in tensor.external_data if entry.key == "location"} or {""}
    return found


def without_zipmap(model: Any) -> Any | None:
    """A copy that gives its probabilities as a matrix instead of one dictionary per row; None where it does so."""
    import onnx

    outputs = {output.name for output in model.graph.output}
    zipmaps = [node for node in model.graph.node if node.op_type == "ZipMap" and node.output[0] in outputs]
    if not zipmaps:
        return None
    if external_files(model):
        raise ModelError("the model gives dictionaries (ZipMap) and has weights in files: convert it with zipmap off")
    copy = type(model)()
    copy.CopyFrom(model)
    for zipmap in zipmaps:
        for i, node in enumerate(copy.graph.node):
            if node.output and node.output[0] == zipmap.output[0]:
                copy.graph.node[i].CopyFrom(onnx.helper.make_node("Identity", [zipmap.input[0]], [zipmap.output[0]]))
                copy.graph.node[i].name = zipmap.name
        for output in copy.graph.output:
            if output.name == zipmap.output[0]:
                output.CopyFrom(onnx.helper.make_tensor_value_info(output.name, onnx.TensorProto.FLOAT, [None, None]))
    entry = copy.metadata_props.add()
    labels = _labels(zipmaps[0])
    if labels and not any(item.key == "classes" for item in model.metadata_props):
        entry.key, entry.value = "classes", json.dumps(labels)
    return copy


def last_operator(model: Any, output: str) -> Any | None:
    """The node that makes an output, seen through those that only pass values on; None where it is an input."""
    made_by = {name: node for node in model.graph.node for name in node.output}
    node = made_by.get(output)
    while node is not None and node.op_type in _PASSING and node.input and node.input[0] in made_by:
        node = made_by[node.input[0]]
    return node


def class_names(model: Any) -> tuple[str, ...] | None:
    """The classes in the order of the probabilities, where the file names them.

    In its metadata (``classes``, a JSON list), in a classifier node, or in a tensor ``classes`` as skl2onnx writes it.
    """
    for item in model.metadata_props:
        if item.key == "classes":
            return _from_metadata(item.value)
    for node in model.graph.node:
        labels = _labels(node)
        if labels:
            return tuple(labels)
    from onnx import numpy_helper

    for tensor in model.graph.initializer:
        if tensor.name == "classes" and len(tensor.dims) == 1 and tensor.data_location != tensor.EXTERNAL:
            return tuple(canonical_class(value) for value in numpy_helper.to_array(tensor).tolist())
    return None


def _from_metadata(text: str) -> tuple[str, ...]:
    try:
        names = json.loads(text)
        if isinstance(names, list) and names:
            return tuple(canonical_class(name) for name in names)
    except ValueError:
        pass
    raise ModelError(
        f'its metadata entry "classes" must be a JSON list of names such as ["cat", "dog"]; got {text[:80]!r}'
    )


def _labels(node: Any) -> list[str]:
    for attribute in node.attribute:
        if attribute.name in _LABEL_ATTRIBUTES:
            values = list(attribute.strings) or list(attribute.ints)
            if values:
                return [canonical_class(value) for value in values]
    return []


def _tensors(model: Any) -> Iterator[Any]:
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        for node in function.node:
            yield from _node_tensors(node)


def _graph_tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        yield from _node_tensors(node)


def _node_tensors(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        yield from (attribute.t, *attribute.tensors)
        for graph in (attribute.g, *attribute.graphs):
            yield from _graph_tensors(graph)


def _require_inside(folder: Path, location: str) -> None:
    path = PurePosixPath(location)
    inside = bool(location) and not path.is_absolute() and ".." not in path.parts and "\\" not in location
    if not inside or not (folder / path).resolve().is_relative_to(folder.resolve()):
        raise ModelError(
            f"the model keeps weights in {location!r}, outside of its own folder: that is not loaded. Save it again "
            f"with its data beside it."
        )
    if not (folder / path).is_file():
        raise ModelError(f"the model keeps weights in {location!r}, and that file is not beside it; save both together")

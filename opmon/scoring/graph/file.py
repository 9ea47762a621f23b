"""Reading an ONNX file before it is run: what it is made of, and whether it is safe to load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from opmon.errors import ModelError
from opmon.values import canonical_class

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

PASSING = frozenset({"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Dropout"})
MISSING_TEXT = "missing_text"
"""The entry of a file's metadata with the word that the model takes for a missing text, where it knows one."""
_LABEL_ATTRIBUTES = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")


def read_model(path: Path) -> ModelProto:
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


def external_files(model: ModelProto) -> set[str]:
    """The names of the files that hold weights."""
    locations = set()
    for tensor in _tensors(model):
        if tensor.data_location == tensor.EXTERNAL:
            locations |= {entry.value for entry in tensor.external_data if entry.key == "location"} or {""}
    return locations


def copied(model: ModelProto) -> ModelProto:
    """A copy of a model that may be changed."""
    copy = type(model)()
    copy.CopyFrom(model)
    return copy


def last_operator(model: ModelProto, output: str) -> NodeProto | None:
    """The node that computes an output, not counting nodes that only pass values on; None where it is an input."""
    made_by = {name: node for node in model.graph.node for name in node.output}
    node = made_by.get(output)
    while node is not None and node.op_type in PASSING and node.input and node.input[0] in made_by:
        node = made_by[node.input[0]]
    return node


def class_names(model: ModelProto) -> tuple[str, ...] | None:
    """The classes in the order of the scores, where the file's metadata names them (``classes``, a JSON list)."""
    text = metadata_of(model, "classes")
    return None if text is None else _from_metadata(text)


def metadata_of(model: ModelProto, key: str) -> str | None:
    """The entry of the file's metadata under a key."""
    return next((str(item.value) for item in model.metadata_props if item.key == key), None)


def classifier_labels(node: NodeProto) -> tuple[str, ...]:
    """The classes that a classifier node chooses from, in the order of its scores; empty for other nodes."""
    for attribute in node.attribute:
        if attribute.name in _LABEL_ATTRIBUTES:
            values: list[bytes | int] = list(attribute.strings) or list(attribute.ints)
            if values:
                return tuple(canonical_class(value) for value in values)
    return ()


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


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    yield from _graph_tensors(model.graph)
    for training in model.training_info:
        yield from _graph_tensors(training.initialization)
        yield from _graph_tensors(training.algorithm)
    for function in model.functions:
        for node in function.node:
            yield from _node_tensors(node)


def _graph_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        yield from _node_tensors(node)


def _node_tensors(node: NodeProto) -> Iterator[TensorProto]:
    for attribute in node.attribute:
        yield from (attribute.t, *attribute.tensors)
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            yield from (sparse.values, sparse.indices)
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

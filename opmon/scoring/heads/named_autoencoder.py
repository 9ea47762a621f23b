"""Reconstruction error by an autoencoder that was trained elsewhere: an ONNX file or a registered model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opmon.abc import Head
from opmon.errors import InputError, ModelError
from opmon.scoring.graph.file import external_files, read_model
from opmon.scoring.graph.monitor_graph import MonitorGraph
from opmon.scoring.graph.nodes import PREFIX

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True)
class NamedAutoencoder(Head):
    """``mean((x − x̂)²)`` over the numbers of an input, where ``x̂`` is what the ONNX model ``model`` makes of it.

    ``model`` is a file or ``models:/name@alias``. It takes what the monitored model takes, and gives the same shape.
    """

    model: str
    """The registered autoencoder, such as models:/denoiser/1."""

    def __post_init__(self) -> None:
        if not self.model:
            raise InputError("model is empty; name an ONNX file or models:/name@alias")

    def bind(self, fetch: Callable[[str], Path]) -> NamedAutoencoder:
        """Return the head with the registry's model as a file on this machine."""
        return dataclasses.replace(self, model=str(fetch(self.model))) if self.model.startswith("models:/") else self

    def nodes(self, graph: MonitorGraph) -> str:
        nodes = graph.nodes
        rebuilt = _appended(graph, _read(Path(self.model), nodes.opset))
        flat = [nodes.cast(nodes.add("Flatten", [name], axis=1), np.float32) for name in (graph.input, rebuilt)]
        return nodes.reduce(
            "ReduceMean", nodes.add("Pow", [nodes.add("Sub", flat), nodes.constant(2.0, np.float32)]), [1]
        )


def _read(path: Path, opset: int) -> ModelProto:
    """The autoencoder in the opset of the model, its names prefixed."""
    import onnx

    model = read_model(path)
    if external_files(model):
        onnx.load_external_data_for_model(model, str(path.parent))
    other = next((int(item.version) for item in model.opset_import if item.domain in ("", "ai.onnx")), opset)
    domains = {item.domain for item in model.opset_import} - {"", "ai.onnx"}
    if domains:
        raise ModelError(
            f"the autoencoder {path.name} uses operators of {', '.join(sorted(domains))}; export it without"
        )
    if other != opset:
        try:
            model = onnx.version_converter.convert_version(model, opset)
        except Exception as exc:  # the converter raises whatever its adapters raise
            raise ModelError(
                f"the autoencoder {path.name} is written in opset {other}, the model in {opset}, and it cannot be "
                f"converted: {exc}. Export one of them again in the opset of the other."
            ) from exc
    given = [item for item in model.graph.input if item.name not in {w.name for w in model.graph.initializer}]
    if len(given) != 1 or len(model.graph.output) != 1:
        raise ModelError(f"the autoencoder {path.name} must have one input and one output")
    del model.graph.input[:]
    model.graph.input.extend(given)
    return onnx.compose.add_prefix(model, f"{PREFIX}autoencoder/")


def _appended(graph: MonitorGraph, other: ModelProto) -> str:
    """The nodes of ``other`` at the end of the graph, fed with the model's input; gives their output."""
    target, source = graph.model.graph, other.graph.input[0].name
    for node in other.graph.node:
        copy = target.node.add()
        copy.CopyFrom(node)
        for i, name in enumerate(copy.input):
            if name == source:
                copy.input[i] = graph.input
    target.initializer.extend(other.graph.initializer)
    return str(other.graph.output[0].name)

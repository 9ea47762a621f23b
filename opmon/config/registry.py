"""Which registry holds the models: MLflow, told under ``mlflow:``, or a plugin under ``registry:``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opmon.config.document import Document

MLFLOW = "mlflow"


def told_once(document: Document) -> None:
    """Read ``registry: {type: mlflow, …}`` as ``mlflow: {…}``; two registries in one file are an error."""
    registry = document.data.get("registry")
    if not isinstance(registry, Mapping):
        return
    if document.data.get("mlflow"):
        raise document.error(
            ("mlflow",),
            f"says where MLflow is, and registry (type: {registry.get('type')}) which registry holds the models; "
            f"keep one of them",
        )
    if registry.get("type") == MLFLOW:
        document.data["mlflow"] = {key: value for key, value in registry.items() if key != "type"}
        for places in (document.lines, document.written):
            _move(places)
        del document.data["registry"]


def is_mlflow(document: Document) -> bool:
    """Whether MLflow holds the models."""
    return document.data.get("registry") is None


def _move(places: dict[Any, Any]) -> None:
    """What is known of ``registry`` and its keys, as of ``mlflow``."""
    for path in [path for path in places if path and path[0] == "registry"]:
        places["mlflow", *path[1:]] = places.pop(path)

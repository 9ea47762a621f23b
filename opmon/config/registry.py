"""Which registry holds the models: MLflow, told under ``mlflow:``, or a plugin under ``registry:``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from opmon import plugins
from opmon.abc import Registry
from opmon.config.document import Document, KeyPath

if TYPE_CHECKING:
    from opmon.config.settings import Settings

MLFLOW = "mlflow"
V = TypeVar("V")


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
        _move(document.lines)
        _move(document.written)
        del document.data["registry"]


def is_mlflow(document: Document) -> bool:
    """Whether MLflow holds the models."""
    return document.data.get("registry") is None


def _move(places: dict[KeyPath, V]) -> None:
    """What is known of ``registry`` and its keys, as of ``mlflow``."""
    for path in [path for path in places if path and path[0] == "registry"]:
        places["mlflow", *path[1:]] = places.pop(path)


def registry_of(settings: Settings) -> Registry:
    """What holds the models: MLflow, or the configured plugin."""
    if settings.registry is not None:
        return settings.registry.plugin
    addresses = settings.mlflow.tracking_uri, settings.mlflow.registry_uri
    tracking, models = (None if address is None else address.get_secret_value() for address in addresses)
    return plugins.make("registry", MLFLOW, {"tracking_uri": tracking, "registry_uri": models})

"""The action that marks the model version in the registry."""

from __future__ import annotations

from dataclasses import dataclass

from opmon.errors import DeliveryError
from opmon.triggers._on_registry import OnRegistry
from opmon.types import Document, ModelVersion

RETRAIN_TAG = "opmon.retrain"


@dataclass(frozen=True)
class RegistryTag(OnRegistry):
    """On an alarm, sets the tags ``opmon.retrain`` and ``opmon.<monitor>.retrain`` of the model version to its id.

    Whoever retrains reads the tag, or lets the registry's own webhook on tags start it. Setting the same tag twice
    changes nothing, so a repeated delivery is harmless. A recovery leaves the tag: whoever acted on it removes it.
    """

    retrain: bool = True
    """Whether the tag opmon.retrain is set by an alarm too."""

    def act(self, event: Document) -> None:
        if not self.retrain or event["type"] != "opmon.alarm":
            return
        model = event.get("model") or {}
        if not model.get("name") or not model.get("version"):
            raise DeliveryError(f"event {event['id']} names no model version to tag", final=True)
        version = ModelVersion(name=str(model["name"]), version=str(model["version"]), flavors=())
        own = f"opmon.{event['monitor']}.retrain"  # another monitor's alarm on this version leaves it
        self.registry.tag_version(version, {RETRAIN_TAG: str(event["id"]), own: str(event["id"])})

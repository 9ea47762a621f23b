"""The action that moves an alias in the registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from opmon.abc import Ability
from opmon.errors import DeliveryError, InputError
from opmon.triggers._on_registry import OnRegistry
from opmon.types import Document, ModelVersion

_MOVES = ("opmon.alarm", "opmon.recovered", "opmon.changed")


@dataclass(frozen=True)
class RegistryAlias(OnRegistry):
    """On an alarm, gives the model version the alias ``alias``; once no alarm stands takes it away where ``remove``.

    For example ``degraded``: whoever reads ``models:/digits@degraded`` finds the version to replace. Setting it twice
    changes nothing, so a repeated delivery is harmless. The alias by which production finds its model is left alone:
    which version serves is not opmon's to decide.
    """

    needs: ClassVar[frozenset[Ability]] = frozenset({"move aliases"})

    alias: str = "degraded"
    """The alias to set on the version that an event is about."""
    remove: bool = True
    """Whether the alias is removed once the alarm is over, and no other rule's alarm stands."""

    def __post_init__(self) -> None:
        if not isinstance(self.alias, str) or not self.alias.strip() or self.alias.lower() in ("latest",):
            raise InputError(f"alias must be a name such as 'degraded'; got {self.alias!r}")

    def act(self, event: Document) -> None:
        if event["type"] not in _MOVES:  # that a monitor is silent says nothing of a version
            return
        model = event.get("model") or {}
        if not model.get("name") or not model.get("version"):
            raise DeliveryError(f"event {event['id']} names no model version", final=True)
        version = ModelVersion(name=str(model["name"]), version=str(model["version"]), flavors=())
        if event["type"] == "opmon.alarm":
            self.registry.set_alias(version, self.alias)
        elif self.remove and not event.get("alarms"):
            self.registry.remove_alias(version, self.alias)

"""The contract of actions: what is done with an event."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from opmon.abc.plugin import Plugin
from opmon.abc.registry import Registry


class Action(Plugin, ABC):
    """Acts on an event. May be called again with the same event: ``event["id"]`` is the idempotency key."""

    def bind(self, registry: Registry) -> Self:
        """The same action with the registry it writes to, where it does."""
        return self

    @abstractmethod
    def act(self, event: Mapping[str, Any]) -> None:
        """Do it, or raise :class:`opmon.errors.DeliveryError` where the target did not take it."""

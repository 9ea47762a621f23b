"""The contract of actions, which act on events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from opmon.abc.plugin import Plugin
from opmon.abc.registry import Ability, Registry
from opmon.types import Document


class Action(Plugin, ABC):
    """Acts on an event. May be called again with the same event: ``event["id"]`` is the idempotency key."""

    needs: ClassVar[frozenset[Ability]] = frozenset()
    """The abilities that its registry must have."""

    def bind(self, registry: Registry) -> Self:
        """Return the action with the registry that it writes to, where it does."""
        return self

    @abstractmethod
    def act(self, event: Document) -> None:
        """Act on the event, or raise :class:`opmon.errors.DeliveryError` where the target did not take it."""

"""The base of actions that write to the registry."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Self

from opmon.abc import Action, Registry
from opmon.errors import OpmonError


@dataclass(frozen=True)
class OnRegistry(Action):
    """An action that needs the registry; :meth:`bind` gives it one."""

    _registry: Registry | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def registry(self) -> Registry:
        """The registry, or an error where none was given."""
        if self._registry is None:
            raise OpmonError(f"{type(self).__name__} writes to the registry: call bind(registry) first")
        return self._registry

    def bind(self, registry: Registry) -> Self:
        """The same action with the registry it writes to."""
        bound = copy.copy(self)
        object.__setattr__(bound, "_registry", registry)
        return bound

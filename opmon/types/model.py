"""A version of a registered model, and what it was logged to take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """One version of a registered model, resolved from an address such as ``models:/digits@champion``."""

    name: str
    version: str
    flavors: tuple[str, ...]
    run_id: str | None = None
    """The training run, where the registry knows it."""
    model_id: str | None = None
    """MLflow's LoggedModel, where there is one."""
    registered_at: datetime | None = None
    """When it was registered, where the registry knows it: a model that was deleted and registered anew is another one
    of the same name and version."""

    @property
    def uri(self) -> str:
        return f"models:/{self.name}/{self.version}"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model was logged to take: named columns with MLflow's types, or tensors as (name, dtype, shape)."""

    columns: tuple[tuple[str, str], ...] = ()
    tensors: tuple[tuple[str | None, str, tuple[int, ...]], ...] = ()
    outputs: tuple[tuple[str | None, str, tuple[int, ...]], ...] = ()
    """What it was logged to give, likewise; a column has no shape."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order the model takes them."""
        return tuple(name for name, _ in self.columns)

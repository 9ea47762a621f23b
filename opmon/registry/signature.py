"""What a model's MLflow signature says of its inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs of a model: named columns with MLflow's types, or tensors as (name, dtype, shape)."""

    columns: tuple[tuple[str, str], ...] = ()
    tensors: tuple[tuple[str | None, str, tuple[int, ...]], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order the model takes them."""
        return tuple(name for name, _ in self.columns)


def read_signature(mlmodel: Mapping[str, Any]) -> Signature | None:
    """The signature in an ``MLmodel`` file; None where it has none, or one of a kind that says nothing of columns."""
    inputs = (mlmodel.get("signature") or {}).get("inputs")
    if not inputs:
        return None
    columns, tensors = [], []
    for spec in json.loads(inputs):
        if spec.get("type") == "tensor":
            tensor = spec["tensor-spec"]
            tensors.append((spec.get("name"), tensor["dtype"], tuple(tensor["shape"])))
        elif spec.get("name") is not None:
            columns.append((spec["name"], str(spec["type"])))
    return Signature(tuple(columns), tuple(tensors)) if columns or tensors else None

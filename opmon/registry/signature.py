"""The inputs in a model's MLflow signature."""

from __future__ import annotations

import json

from opmon.types import Document, Signature


def read_signature(mlmodel: Document) -> Signature | None:
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
        else:  # one column without a name: a list of values
            tensors.append((None, str(spec["type"]), (-1,)))
    return Signature(tuple(columns), tuple(tensors), _outputs(mlmodel)) if columns or tensors else None


def _outputs(mlmodel: Document) -> tuple[tuple[str | None, str, tuple[int, ...]], ...]:
    told = (mlmodel.get("signature") or {}).get("outputs")
    found: list[tuple[str | None, str, tuple[int, ...]]] = []
    for spec in json.loads(told) if told else ():
        if spec.get("type") == "tensor":
            found.append((spec.get("name"), spec["tensor-spec"]["dtype"], tuple(spec["tensor-spec"]["shape"])))
        else:
            found.append((spec.get("name"), str(spec.get("type")), ()))
    return tuple(found)

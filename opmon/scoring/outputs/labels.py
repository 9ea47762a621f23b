"""The names of the values in a model's label output, settled once for all of them before the first is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.scoring.outputs.origin import Origin
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Array
from opmon.values import canonical_class

_INTEGERS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
KINDS = (*_INTEGERS, "string", "bool")
"""The types that a label output may have."""


@dataclass(frozen=True, slots=True)
class Labels:
    """A plan for reading the label output ``output``: as ``names`` by value, as numbers of columns, or as it is."""

    output: str
    names: Mapping[str, str] | None = None
    """The class that each value stands for. None: see ``numbers``."""
    numbers: bool = False
    """Whether a value is the number of its column, the first being 0; else it is the name of its own class."""
    spellings: Spellings = AS_SPELT
    """The model's spellings of the classes, where the values are names."""
    proven: bool = True
    """Whether the graph says so. If not, the labels must go with the scores."""

    def read(self, values: Array, rows: int, classes: tuple[str, ...]) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
        """The name of each input's class, and its column (−1: none has the name)."""
        if values.size != rows:
            raise ModelError(several(self.output, values.shape))
        values = values.reshape(-1)
        if values.dtype.kind in "bO":
            values = values.astype(np.int64 if values.dtype.kind == "b" else np.str_)
        different, which = np.unique(values, return_inverse=True)
        names = [self._name(canonical_class(value), classes) for value in different.tolist()]
        columns = {name: column for column, name in enumerate(classes)}
        places = np.array([columns.get(name, -1) for name in names], dtype=np.int64)
        return np.array(names, dtype=np.str_)[which], places[which]

    def _name(self, value: str, classes: tuple[str, ...]) -> str:
        if self.names is not None and value in self.names:
            return self.names[value]
        if self.names is None and not self.numbers:
            return self.spellings.name(value)
        if self.names is None and value.isdigit() and int(value) < len(classes):
            return classes[int(value)]
        known = f"0 to {len(classes) - 1}" if self.names is None else ", ".join(list(self.names)[:10])
        raise ModelError(
            f"the model's label output {self.output!r} gives {value!r}, and its labels should be {known}: give "
            f"classes, one name for each column of the scores in their order, as the model answers them"
        )


def several(output: str, shape: Sequence[int | None]) -> str:
    """The error for a model that gives more than one label for each input."""
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    return (
        f"the model's label output {output!r} has the shape [{sizes}], several labels for each input (multi-label). "
        f"Where each says whether a class holds, set problem: multilabel, with classes in their order; else export the "
        f"model with one of its labels, for each that is to be watched."
    )


def plan_labels(
    output: str,
    kind: str,
    origin: Origin | None,
    classes: tuple[str, ...] | None,
    own: tuple[str, ...] | None,
    spellings: Spellings = AS_SPELT,
) -> Labels:
    """Plan how to read a label output. ``classes`` are the given names by column, ``own`` those of the model itself."""
    if origin is not None and origin.names is None:
        return Labels(output, numbers=True)
    values = own or classes if origin is None else origin.names
    if values is None:
        return Labels(output, spellings=spellings) if kind == "string" else Labels(output, numbers=True, proven=False)
    if origin is None and kind != "string" and not all(_is_number(value) for value in values):
        return Labels(output, numbers=True, proven=False)
    named = values if classes is None or set(values) == set(classes) else classes
    return Labels(output, dict(zip(values, named, strict=True)), proven=origin is not None)


def _is_number(name: str) -> bool:
    return name.removeprefix("-").isdigit()

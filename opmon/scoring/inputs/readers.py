"""Ways from rows to a model's tensors that are not plain columns of numbers: the seam they share."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from opmon.errors import InputError, ModelError
from opmon.scoring.inputs.columns import DTYPES, Rejections
from opmon.scoring.inputs.tensors import Fed
from opmon.scoring.session import Tensor
from opmon.types import Array

Function = Callable[[pa.RecordBatch], ArrayLike | Mapping[str, ArrayLike]]


class Reader(Protocol):
    """Makes tensors of the rows of a batch, and sets aside those it cannot make any of."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def tensors(self, batch: pa.RecordBatch) -> Fed: ...


class ReaderPlan(Protocol):
    """A way of reading rows, before it is known what the model takes."""

    def reader(self, inputs: Sequence[Tensor]) -> Reader: ...


@dataclass(frozen=True)
class FunctionInput:
    """``module:function`` of the user: a RecordBatch in, an array or a dictionary of arrays out, one row per input.

    NaN reaches the model; rows with an infinite number are set aside. Where it raises, the rows are given to it one by
    one, and those that it raises for are set aside with its words.
    """

    function: str

    def reader(self, inputs: Sequence[Tensor]) -> FunctionReader:
        return FunctionReader(_imported(self.function), tuple(inputs), self.function)


@dataclass(frozen=True)
class FunctionReader:
    function: Function
    inputs: tuple[Tensor, ...]
    name: str
    columns: tuple[str, ...] = ()

    def tensors(self, batch: pa.RecordBatch) -> Fed:
        rejected = Rejections(batch.num_rows)
        try:
            made = self._called(batch)
            rows = np.arange(batch.num_rows)
        except ModelError:
            raise
        except Exception:  # noqa: BLE001 - the user's code: which row is it?
            made, rows = self._one_by_one(batch, rejected)
        good = np.ones(len(rows), dtype=bool)
        for values in made.values():
            if values.dtype.kind == "f":
                good &= ~np.isinf(values.reshape(len(values), -1)).any(axis=1)
        mask = np.zeros(batch.num_rows, dtype=bool)
        mask[rows[~good]] = True
        rejected.add(mask, lambda row: f"{self.name} gives an infinite number")
        return Fed({name: values[good] for name, values in made.items()}, rows[good], rejected.reasons)

    def _one_by_one(self, batch: pa.RecordBatch, rejected: Rejections) -> tuple[dict[str, Array], NDArray[np.int64]]:
        parts, rows = [], []
        for row in range(batch.num_rows):
            try:
                parts.append(self._called(batch.slice(row, 1)))
                rows.append(row)
            except ModelError:
                raise
            except Exception as exc:  # noqa: BLE001 - the user's code: its words are the reason
                rejected.reasons[row] = f"{self.name}: {type(exc).__name__}: {str(exc)[:200]}"
        if not parts:
            return {
                item.name: np.empty((0, *(size or 0 for size in item.shape[1:]))) for item in self.inputs
            }, np.empty(0, np.int64)
        return {item.name: np.concatenate([part[item.name] for part in parts]) for item in self.inputs}, np.array(rows)

    def _called(self, batch: pa.RecordBatch) -> dict[str, Array]:
        given = self.function(batch)
        arrays = given if isinstance(given, Mapping) else {self.inputs[0].name: given}
        missing = [item.name for item in self.inputs if item.name not in arrays]
        if missing:
            raise ModelError(
                f"{self.name} must give an array for each input of the model; missing: {', '.join(missing)}"
            )
        made = {item.name: np.asarray(arrays[item.name], DTYPES.get(item.kind)) for item in self.inputs}
        for name, values in made.items():
            if values.ndim == 0 or len(values) != batch.num_rows:
                raise ModelError(
                    f"{self.name} must give one row for each of the {batch.num_rows} inputs; {name} has shape "
                    f"{values.shape}"
                )
        return made


def _imported(name: str) -> Function:
    module, separator, attribute = name.partition(":")
    if not separator or not module or not attribute:
        raise InputError(f"a function is named module:function; got {name!r}")
    try:
        function: Function = getattr(importlib.import_module(module), attribute)
    except Exception as exc:  # a module may fail in any way when it is imported
        raise InputError(f"{name!r} cannot be imported: {type(exc).__name__}: {exc}") from exc
    if not callable(function):
        raise InputError(f"{name!r} is a {type(function).__name__}, not a function")
    return function

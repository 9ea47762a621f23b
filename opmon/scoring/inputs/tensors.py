"""The tensors of a model, made from the columns of production's inputs that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.scoring.inputs.columns import AS_NAN, DTYPES, Missing, Rejections, numbers
from opmon.scoring.inputs.lists import Shape, is_listed, settled_shape, tensor
from opmon.scoring.session import Tensor
from opmon.types import Array
from opmon.wording import did_you_mean, nearest


@dataclass(frozen=True, slots=True)
class Feed:
    """The source of one model input: a column with a list, or a number from each of ``columns``."""

    input: str
    columns: tuple[str, ...]
    dtype: type[np.generic]
    shape: Shape
    """The shape of one row: ``()`` is one value."""
    listed: bool
    hint: str = ""
    """The end of the reason for rows of another length."""


@dataclass(frozen=True, slots=True)
class Fed:
    """The tensors of a batch's good rows, and why the others are not in them."""

    tensors: Mapping[str, Array]
    rows: NDArray[np.int64]
    rejected: Mapping[int, str]
    missing: Mapping[str, int] = field(default_factory=dict)
    """In how many rows of the batch a column has no value."""

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns that each tensor comes from, as far as they are known."""

    def gap(self, place: int) -> str | None:
        """The first thing missing in the tensors of a row: a column, or a tensor of unknown source; None: nothing."""
        for name, values in self.tensors.items():
            gaps = np.isnan(values[place]).reshape(-1) if values.dtype.kind == "f" else np.zeros(0, dtype=bool)
            if gaps.any():
                columns = self.columns.get(name, (name,))
                return columns[int(gaps.argmax()) if len(columns) == gaps.size else 0]
        return None

    def without(self, failed: Mapping[int, str]) -> Fed:
        """The tensors without the rows that the model fails on; ``failed`` says why, by their place in the tensors."""
        if not failed:
            return self
        keep = np.ones(len(self.rows), dtype=bool)
        keep[list(failed)] = False
        rejected = {int(self.rows[place]): why for place, why in failed.items()}
        tensors = {name: values[keep] for name, values in self.tensors.items()}
        return Fed(tensors, self.rows[keep], {**self.rejected, **rejected}, self.missing, self.columns)


@dataclass(frozen=True, slots=True)
class Inputs:
    """A plan that makes tensors of batches."""

    feeds: tuple[Feed, ...]
    missing: Missing = AS_NAN

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys(name for feed in self.feeds for name in feed.columns))

    def tensors(self, batch: pa.RecordBatch) -> Fed:
        """The batch as tensors; a row with a value that cannot be fed is set aside with its reason."""
        rejected = Rejections(batch.num_rows)
        made = {feed.input: self._tensor(feed, batch, rejected) for feed in self.feeds}
        rejected.add_empty()
        sources = {feed.input: feed.columns for feed in self.feeds}
        good = rejected.good
        if good is None:
            tensors = {name: values for name, (values, _) in made.items()}
            return Fed(tensors, np.arange(batch.num_rows), {}, rejected.missing, sources)
        tensors = {
            name: values[good] if rows is None else values[np.searchsorted(rows, good)]
            for name, (values, rows) in made.items()
        }
        return Fed(tensors, good, rejected.reasons, rejected.missing, sources)

    def _tensor(
        self, feed: Feed, batch: pa.RecordBatch, rejected: Rejections
    ) -> tuple[Array, NDArray[np.int64] | None]:
        if feed.listed:
            column = batch.column(feed.columns[0])
            shape = tuple(size or 0 for size in feed.shape)
            return tensor(feed.columns[0], column, shape, feed.dtype, self.missing, rejected, feed.hint)
        if len(feed.columns) == 1:
            name = feed.columns[0]
            values = numbers(name, batch.column(name), feed.dtype, self.missing, rejected)
            return values.reshape(-1, *(1 for _ in feed.shape)), None
        matrix = np.empty((batch.num_rows, len(feed.columns)), feed.dtype)
        for i, name in enumerate(feed.columns):
            matrix[:, i] = numbers(name, batch.column(name), feed.dtype, self.missing, rejected)
        return matrix, None


def plan_inputs(
    inputs: Sequence[Tensor],
    batch: pa.RecordBatch,
    features: Sequence[str] | None = None,
    column: str | None = None,
    missing: Missing = AS_NAN,
) -> Inputs:
    """Decide where each input of the model comes from.

    ``column`` names one column of lists; ``features`` one column for each number, in the model's order, or one for each
    input, by name. With neither: columns named as the model's inputs, or the only column of lists that there is.
    """
    _require_columns(batch, [*(features or ()), *([column] if column else ())])
    if len(inputs) > 1:
        return Inputs(_by_name(inputs, batch, features, column), missing)
    (only,) = inputs
    if features:
        return Inputs((_stacked(only, tuple(features)),), missing)
    if column is None:
        column = _guess(only, batch)
    return Inputs((_one(only, column, batch),), missing)


def _one(target: Tensor, name: str, batch: pa.RecordBatch) -> Feed:
    shape = _row_shape(target)
    if is_listed(batch.schema.field(name).type):
        hint = (
            "" if all(shape) else ": the model leaves it open, and the first input settles it; pad them to one length"
        )
        return Feed(target.name, (name,), _dtype(target), settled_shape(batch.column(name), shape), True, hint)
    if any(size not in (None, 1) for size in shape):
        raise ModelError(
            f"the model takes {target} and column {name!r} is {batch.schema.field(name).type}; it must be a list of "
            f"numbers. Set inputs.tensor to another column, or inputs.features to one column for each number."
        )
    return Feed(target.name, (name,), _dtype(target), shape, False)


def _stacked(target: Tensor, features: tuple[str, ...]) -> Feed:
    shape = _row_shape(target)
    if len(shape) > 1 or (shape and shape[0] not in (None, len(features))) or (not shape and len(features) > 1):
        raise ModelError(
            f"the model takes {target}, and features names {len(features)} columns; name one for each number, in the "
            f"order of the training data"
        )
    return Feed(target.name, features, _dtype(target), shape, False)


def _by_name(
    inputs: Sequence[Tensor], batch: pa.RecordBatch, features: Sequence[str] | None, column: str | None
) -> tuple[Feed, ...]:
    """Each input takes the column of its name, or of its place where ``features`` are called otherwise."""
    names = [target.name for target in inputs]
    columns = names if features is None or set(features) == set(names) else list(features)
    crossed = [name for name, own in zip(columns, names, strict=False) if name != own and name in names]
    if column is not None or len(columns) != len(names) or crossed:
        raise ModelError(
            f"the model has {len(names)} inputs ({', '.join(names[:10])}): each takes the column of its name. "
            f"Leave inputs.tensor and inputs.features out, or name one column for each in features, in this order."
        )
    _require_columns(batch, columns)
    return tuple(_one(target, name, batch) for target, name in zip(inputs, columns, strict=True))


def _guess(target: Tensor, batch: pa.RecordBatch) -> str:
    if target.name in batch.schema.names:
        return target.name
    lists = [field.name for field in batch.schema if is_listed(field.type)]
    if len(lists) == 1:
        return str(lists[0])
    raise ModelError(
        f"it is not clear which columns the model takes ({target}); there are: {', '.join(batch.schema.names)}. "
        f"Set inputs.tensor to the one with lists of numbers, or inputs.features to one for each number, in order."
    )


def _row_shape(target: Tensor) -> Shape:
    if not target.shape:
        raise ModelError(f"the model takes {target}, without a dimension for the inputs of a batch; export it with one")
    return target.shape[1:]


def _dtype(target: Tensor) -> type[np.generic]:
    if target.kind not in DTYPES:
        raise ModelError(
            f"the model takes {target}, which cannot be made from columns; it may take: {', '.join(DTYPES)}"
        )
    return DTYPES[target.kind]


def _require_columns(batch: pa.RecordBatch, names: Sequence[str]) -> None:
    for name in names:
        if name not in batch.schema.names:
            hint = did_you_mean(nearest(name, batch.schema.names))
            raise ModelError(
                f"there is no column {name!r} to feed the model; there are: {', '.join(batch.schema.names)}.{hint}"
            )

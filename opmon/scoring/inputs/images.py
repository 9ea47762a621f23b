"""Pictures as a model's tensor: decoded, resized, laid out, scaled."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import InputError, ModelError, UnavailableError
from opmon.scoring.inputs.columns import DTYPES, REFUSED, Rejections, decoded
from opmon.scoring.inputs.encoded import encoded, readers
from opmon.scoring.inputs.lists import is_listed, tensor
from opmon.scoring.inputs.tensors import Fed
from opmon.scoring.session import Tensor
from opmon.types import Array

if TYPE_CHECKING:
    from PIL import Image
MAX_PIXELS = 40_000_000
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")


@dataclass(frozen=True)
class ImageInput:
    """One column with encoded pictures, paths to them, or arrays of pixels.

    Each becomes ``(pixel · scale − mean) / std`` in the model's own layout (channels first or last, found from its
    shape). Encoded pictures are stretched to the model's size, or with ``crop`` scaled to cover it and cut around the
    middle; arrays must have it. ``size`` (height, width) is needed only where the model leaves it open. Paths are
    below ``folder``.
    """

    column: str
    folder: Path | str | None = None
    size: tuple[int, int] | None = None
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    crop: bool = False

    def __post_init__(self) -> None:
        if any(value <= 0 for value in self.std):
            raise InputError(f"std must be above 0; got {list(self.std)}")

    def reader(self, inputs: Sequence[Tensor]) -> ImageReader:
        if len(inputs) != 1:
            raise ModelError(f"inputs.image is for models with one input; this one has {len(inputs)}")
        shape, (height, width), channels = _planned(inputs[0], self.size)
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, channels):
                raise ModelError(f"{name} has {len(values)} values, and the model takes {channels} channels")
        return ImageReader(self, inputs[0].name, DTYPES[inputs[0].kind], shape, height, width, channels)


@dataclass(frozen=True)
class ImageReader:
    plan: ImageInput
    input: str
    dtype: type[np.generic]
    shape: tuple[int, ...]
    height: int
    width: int
    channels: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.plan.column,)

    @property
    def channels_first(self) -> bool:
        """Whether the model's layout has the channels before the height."""
        return len(self.shape) == 3 and self.shape[0] == self.channels and self.shape[2] != self.channels

    def tensors(self, batch: pa.RecordBatch) -> Fed:
        index = batch.schema.get_field_index(self.plan.column)
        if index < 0:
            raise ModelError(
                f"there is no column {self.plan.column!r} with pictures; there are: {', '.join(batch.schema.names)}"
            )
        column, rejected = decoded(batch.column(index)), Rejections(batch.num_rows)
        if is_listed(column.type):
            pixels, rows = self._arrays(column, rejected)
        else:
            pixels, rows = self._pictures(column, rejected)
        good = rejected.good
        if good is None:
            good = np.arange(batch.num_rows)
        chosen = pixels if len(good) == len(rows) else pixels[np.searchsorted(rows, good)]
        return Fed({self.input: self._laid_out(chosen)}, good, rejected.reasons)

    def _arrays(self, column: pa.Array, rejected: Rejections) -> tuple[Array, NDArray[np.int64]]:
        """Arrays of pixels, channels last, flat or nested."""
        size = (self.height * self.width * self.channels,)
        values, rows = tensor(self.plan.column, column, size, np.float32, REFUSED, rejected)
        pixels = values.reshape(-1, self.height, self.width, self.channels)
        return pixels, np.arange(len(pixels)) if rows is None else rows

    def _pictures(self, column: pa.Array, rejected: Rejections) -> tuple[Array, NDArray[np.int64]]:
        cells = column.to_pylist()
        with ThreadPoolExecutor(max_workers=readers(self.plan.folder)) as pool:
            pictures = list(pool.map(self._picture, cells))
        for row, cell in enumerate(pictures):
            if isinstance(cell, str):
                rejected.reasons[row] = cell
        pixels = [cell for cell in pictures if not isinstance(cell, str)]
        rows = np.array([row for row, cell in enumerate(pictures) if not isinstance(cell, str)], np.int64)
        blank = np.empty((0, self.height, self.width, self.channels), np.uint8)
        return np.stack(pixels) if pixels else blank, rows

    def _picture(self, cell: object) -> NDArray[np.uint8] | str:
        """The pixels of one picture, or why there are none."""
        from PIL import Image

        name = self.plan.column
        try:
            data = encoded(cell, name, self.plan.folder)
            if isinstance(data, str):
                return data
            with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
                if picture.width * picture.height > MAX_PIXELS:
                    return f"column {name!r} holds a picture of {picture.width} × {picture.height} pixels: too many"
                return self._resized(picture.convert("L" if self.channels == 1 else "RGB"))
        except UnavailableError:
            raise
        except Exception as exc:  # noqa: BLE001 - Pillow's decoders raise whatever they like on a corrupt picture
            return f"column {name!r} holds no picture that can be read: {_told(exc)}"

    def _resized(self, picture: Image.Image) -> NDArray[np.uint8]:
        from PIL import Image, ImageOps

        size = (self.width, self.height)
        if picture.size != size:
            how = Image.Resampling.BILINEAR
            picture = ImageOps.fit(picture, size, how) if self.plan.crop else picture.resize(size, how)
        return np.asarray(picture, np.uint8).reshape(self.height, self.width, self.channels)

    def _laid_out(self, pixels: Array) -> Array:
        plan = self.plan
        if np.issubdtype(self.dtype, np.floating):
            scaled: Array = pixels.astype(np.float32) * np.float32(plan.scale)
            if plan.mean != (0.0,) or plan.std != (1.0,):
                scaled = (scaled - np.asarray(plan.mean, np.float32)) / np.asarray(plan.std, np.float32)
        else:
            scaled = pixels  # a model that takes bytes scales them itself
        if self.channels_first:
            scaled = scaled.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(scaled.reshape(-1, *self.shape), self.dtype)


def _told(exc: Exception) -> str:
    """The fault of a picture, in the same words for all with that fault: without the object's address."""
    return f"{type(exc).__name__}: {re.sub(r' *<[^>]*>', '', str(exc))[:120]}"


def _planned(target: Tensor, size: tuple[int, int] | None) -> tuple[tuple[int, ...], tuple[int, int], int]:
    """The shape of one row, its height and width, and how many channels it has."""
    row = target.shape[1:]
    if target.kind not in DTYPES or target.kind == "string":
        raise ModelError(f"the model takes {target}, which is no picture")
    if len(row) == 3:
        first = row[0] in (1, 3) or (row[2] not in (1, 3) and row[0] is None)
        channels = (row[0] if first else row[2]) or 3
        open_size = (row[1], row[2]) if first else (row[0], row[1])
        height, width = _settled(target, open_size, size)
        return ((channels, height, width) if first else (height, width, channels)), (height, width), channels
    if len(row) == 2:
        height, width = _settled(target, (row[0], row[1]), size)
        return (height, width), (height, width), 1
    if len(row) == 1 and row[0] is not None:
        side = math.isqrt(row[0])
        height, width = size or (side, side)
        if row[0] % (height * width) == 0 and row[0] // (height * width) in (1, 3):
            return (row[0],), (height, width), row[0] // (height * width)
    raise ModelError(
        f"the model takes {target}, and that is no shape of a picture; set inputs.image.size or a function"
    )


def _settled(target: Tensor, sides: tuple[int | None, int | None], size: tuple[int, int] | None) -> tuple[int, int]:
    height, width = (own or given for own, given in zip(sides, size or (None, None), strict=True))
    if height is None or width is None:
        raise ModelError(f"the model takes {target}: say with inputs.image.size how high and wide its pictures are")
    return height, width

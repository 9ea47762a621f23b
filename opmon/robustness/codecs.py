"""Between what a model takes and what perturbations work on: pictures as float32 in [0, 1], channels last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from opmon.errors import InputError
from opmon.robustness.perturbations.base import Images
from opmon.types import Array


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The codec of texts, tables and whatever perturbations take as it is."""

    def encode(self, inputs: Array) -> Array:
        return inputs

    def decode(self, inputs: Array) -> Array:
        return inputs


@dataclass(frozen=True, slots=True)
class Pictures:
    """The form of the model's pictures: height, width and channels, in which order, and which numbers are black and
    white, for all channels or each. ``steps``: how many there are from black to white (None: any number between)."""

    height: int
    width: int
    channels: int = 1
    channels_first: bool = False
    black: float | tuple[float, ...] = 0.0
    white: float | tuple[float, ...] = 1.0
    dtype: DTypeLike = np.float32
    shape: tuple[int, ...] = ()
    """The shape of one input as the model takes it."""
    steps: int | None = None

    @classmethod
    def like(
        cls, inputs: Array, size: tuple[int, int] | None = None, span: tuple[float, float] | None = None
    ) -> Pictures:
        """The codec of inputs such as these. ``size`` (height, width) is needed where a picture is flat and not square;
        ``span`` is black and white, found from the type and the numbers where it is not given."""
        height, width, channels, first = _layout(inputs.shape[1:], size)
        black, white = _span(inputs) if span is None else span
        if not white > black:
            raise InputError(f"white is above black; got {black} and {white}")
        return cls(height, width, channels, first, black, white, inputs.dtype, inputs.shape[1:])

    def encode(self, inputs: Array) -> Images:
        if self.channels_first:
            images = inputs.reshape(-1, self.channels, self.height, self.width).transpose(0, 2, 3, 1)
        else:
            images = inputs.reshape(-1, self.height, self.width, self.channels)
        if (self.black, self.white) != (0, 1):
            black, width = self._range
            images = (images.astype(np.float32) - black) / width
        return np.ascontiguousarray(np.clip(images, 0, 1), np.float32)  # rounding leaves black a little below 0

    def decode(self, inputs: Images) -> Array:
        values = inputs
        if self.steps is not None:
            values = np.rint(values * np.float32(self.steps)) / np.float32(self.steps)
        if (self.black, self.white) != (0, 1):
            black, width = self._range
            values = values * width + black
        if np.issubdtype(np.dtype(self.dtype), np.integer):
            values = np.rint(values)
        if self.channels_first:
            values = values.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(values.reshape(-1, *self.shape), self.dtype)

    @property
    def _range(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Black, and how far it is to white; one number or one for each channel."""
        black, white = np.asarray(self.black, np.float32), np.asarray(self.white, np.float32)
        return black, white - black


def _layout(shape: tuple[int, ...], size: tuple[int, int] | None) -> tuple[int, int, int, bool]:
    if len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4):
        return shape[0], shape[1], shape[2], False
    if len(shape) == 3 and shape[0] in (1, 3, 4):
        return shape[1], shape[2], shape[0], True
    if len(shape) == 2:
        return shape[0], shape[1], 1, False
    if len(shape) == 1:
        count = shape[0]
        if size is None:
            side = round(count**0.5)
            size = (side, side)
        if size[0] * size[1] and count % (size[0] * size[1]) == 0 and count // (size[0] * size[1]) in (1, 3, 4):
            return size[0], size[1], count // (size[0] * size[1]), False
    raise InputError(
        f"inputs of shape {shape} are no pictures that can be told; give them as height × width, with 1, 3 or 4 "
        f"channels first or last, or say their size (height, width)"
    )


def _span(inputs: Array) -> tuple[float, float]:
    if inputs.dtype == np.uint8:
        return 0.0, 255.0
    low, high = float(np.min(inputs)), float(np.max(inputs))
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and 16 < high <= 255:
        return 0.0, 255.0
    return low, high if high > low else low + 1.0

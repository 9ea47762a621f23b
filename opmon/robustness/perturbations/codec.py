"""Coding and loss: jpeg-compression, codec-error and occlusion."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Perturbation
from opmon.robustness.perturbations._images import clipped
from opmon.robustness.perturbations.base import Images, Kind, parameter, require_table

_BLOCK = 16
"""The side of the blocks that JPEG codes together, colours at half resolution included."""


@dataclass(frozen=True)
class JpegCompression(Perturbation):
    """Through libjpeg at a quality. Table: MNIST-C (25 to 7), from CIFAR-10-C's 40 on.

    All images of a batch are coded as tiles of one large picture, each padded to whole blocks: the same result as one
    by one (but for rounding of colours at the edges), many times faster.
    """

    kind: ClassVar[Kind] = "image"
    qualities: tuple[int, ...] = (40, 25, 18, 10, 7)
    """JPEG qualities, from 0 to 100, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("qualities", self.qualities, 1, 100)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        quality = round(parameter(self.qualities, severity, "jpeg-compression"))
        if inputs.shape[3] not in (1, 3):
            coded = [_tiles(inputs[..., channel : channel + 1], quality) for channel in range(inputs.shape[3])]
            return np.concatenate(coded, axis=3)
        return _tiles(inputs, quality)


@dataclass(frozen=True)
class CodecError(Perturbation):
    """Lost blocks: a share of the blocks (an eighth of the side) shows what was meant for another place, as where a
    video decoder lost its reference (the codec error challenge of CURE-TSD, Temel et al., 2017). Which blocks are lost
    is drawn for each image; a higher severity loses more of the same. Table: our own."""

    kind: ClassVar[Kind] = "image"
    shares: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.45)
    """Shares of the blocks that are lost, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("shares", self.shares, 0, 1)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        n, height, width, _ = inputs.shape
        block = max(2, min(height, width) // 8)
        rows, columns = -(-height // block), -(-width // block)
        lost = rng.random((n, rows, columns)) < parameter(self.shares, severity, "codec-error")
        shift = rng.integers(-2 * block, 2 * block + 1, (2, n, rows, columns))
        image, row, column = (place[:, None, None] for place in np.nonzero(lost))
        y = np.minimum(row * block + np.arange(block)[None, :, None], height - 1)
        x = np.minimum(column * block + np.arange(block)[None, None, :], width - 1)
        dy, dx = (part[:, None, None] for part in shift[:, lost])
        result = inputs.copy()
        result[image, y, x] = inputs[image, (y + dy) % height, (x + dx) % width]
        return result


@dataclass(frozen=True)
class Occlusion(Perturbation):
    """A black rectangle over c of each side, at a place drawn for each image (DeepXplore's occlusion, Pei et al., SOSP
    2017; cutout, DeVries and Taylor, 2017). Table: our own, 1 % to 25 % of the area."""

    kind: ClassVar[Kind] = "image"
    sides: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    """Covered share of each side, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("sides", self.sides, 0, 1)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        n, height, width, _ = inputs.shape
        middle = rng.random((2, n, 1))
        side = parameter(self.sides, severity, "occlusion") / 2
        down = np.abs((np.arange(height) + 0.5) / height - _kept_inside(middle[0], side)) <= side
        across = np.abs((np.arange(width) + 0.5) / width - _kept_inside(middle[1], side)) <= side
        covered = down[:, :, None] & across[:, None, :]
        return np.where(covered[..., None], np.float32(0), inputs)


def _kept_inside(middle: NDArray[np.float64], side: float) -> NDArray[np.float64]:
    return side + middle * (1 - 2 * side)


def _tiles(images: Images, quality: int) -> Images:
    from PIL import Image

    n, height, width, channels = images.shape
    padded = [-(-(size + 2) // _BLOCK) * _BLOCK for size in (height, width)]
    columns = max(1, min(n, 60_000 // padded[1]))  # JPEG's sides end at 65,535
    rows = -(-n // columns)
    if rows * padded[0] > 60_000:
        half = n // 2
        return np.concatenate([_tiles(images[:half], quality), _tiles(images[half:], quality)])
    pixels = np.zeros((rows * columns, *padded, channels), np.uint8)
    bytes_ = np.rint(images * 255).astype(np.uint8)
    pixels[:n] = np.pad(bytes_, ((0, 0), (0, padded[0] - height), (0, padded[1] - width), (0, 0)), mode="edge")
    sheet = pixels.reshape(rows, columns, *padded, channels).swapaxes(1, 2)
    sheet = sheet.reshape(rows * padded[0], columns * padded[1], channels)
    coded = io.BytesIO()
    Image.fromarray(sheet[..., 0] if channels == 1 else sheet).save(coded, "JPEG", quality=quality)
    shown = np.asarray(Image.open(coded)).reshape(rows, padded[0], columns, padded[1], channels).swapaxes(1, 2)
    tiles = shown.reshape(rows * columns, *padded, channels)[:n, :height, :width]
    return clipped(tiles.astype(np.float32) / 255)

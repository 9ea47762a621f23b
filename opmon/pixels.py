"""Numbers as the pixels of a picture: their arrangement, and which of them is black and which is white."""

from __future__ import annotations

import math

from opmon.types import Array


def in_order(pixels: Array) -> Array | None:
    """The pixels as height × width or height × width × 3 or 4; None where they are no picture."""
    if pixels.size == 0:
        return None
    if pixels.ndim == 1:
        return _squared(pixels)
    if pixels.ndim == 4 and pixels.shape[0] == 1:
        pixels = pixels[0]
    if pixels.ndim == 3 and pixels.shape[-1] not in (1, 3, 4) and pixels.shape[0] in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    return pixels if pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[-1] in (3, 4)) else None


def black_and_white(low: float, high: float) -> tuple[float, float]:
    """What is black and what is white of pictures whose numbers lie between ``low`` and ``high``.

    0 and 1, or 0 and 255, where that fits, else the darkest and the lightest there is.

    >>> black_and_white(0.1, 0.9), black_and_white(0.0, 200.0), black_and_white(-2.0, 3.0)
    ((0.0, 1.0), (0.0, 255.0), (-2.0, 3.0))
    """
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and 128 <= high <= 255:
        return 0.0, 255.0
    return (low, high) if high > low else (low, low + 1)


def _squared(pixels: Array) -> Array | None:
    """A flat list as a square, grey or in colour, whose colours come last or first: whichever is smoother."""
    side = math.isqrt(pixels.size)
    if side * side == pixels.size:
        return pixels.reshape(side, side)
    side = math.isqrt(pixels.size // 3)
    if 3 * side * side != pixels.size:
        return None
    last, first = pixels.reshape(side, side, 3), pixels.reshape(3, side, side).transpose(1, 2, 0)
    return min(last, first, key=_roughness)


def _roughness(pixels: Array) -> float:
    import numpy as np

    down, across = (np.abs(np.diff(pixels.astype(np.float32), axis=axis)) for axis in (0, 1))
    return float(np.nansum(down) + np.nansum(across))

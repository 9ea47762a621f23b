"""Pictures from whatever production logged as one: arrays of numbers, nested lists, encoded bytes."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from opmon.pixels import black_and_white, in_order
from opmon.types import Array

if TYPE_CHECKING:
    from PIL import Image

logger = logging.getLogger(__name__)

MAX_BYTES = 32 * 1024 * 1024
"""The most bytes of one encoded picture that are opened."""
MAX_PIXELS = 40_000_000
"""The most pixels of one picture that are decoded (an 8k frame has 33 million)."""

_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")

Pixels: TypeAlias = Array | bytes | str
"""A picture as numbers, as encoded bytes, or the word for what is wrong with it."""


class UnshowableError(Exception):
    """Why there is no picture, in a word or two."""


def arranged(image: object) -> Pixels:
    """The pixels as height × width or height × width × channels; encoded bytes as they are; else a word."""
    import numpy as np

    if image is None:
        return "missing"
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image) if len(image) <= MAX_BYTES else "too large"
    try:
        pixels = np.asarray(image)
        pixels = pixels if pixels.dtype == np.uint8 else pixels.astype(np.float32)
    except (ValueError, TypeError):
        return "no picture"
    if pixels.size > 4 * MAX_PIXELS:
        return "too large"
    if pixels.size == 0:
        return "empty"
    arranged = in_order(pixels)
    return "no picture" if arranged is None else arranged


def range_of_all(arrays: Sequence[Array]) -> tuple[float, float]:
    """What is black and what is white, for all pictures that are not made of bytes."""
    import numpy as np

    numbers = [array[np.isfinite(array)] for array in arrays if array.dtype != np.uint8]
    numbers = [array for array in numbers if array.size]
    if not numbers:
        return 0.0, 1.0
    return black_and_white(float(min(a.min() for a in numbers)), float(max(a.max() for a in numbers)))


def decoded(content: bytes, draft: int | None = None) -> Image.Image:
    """The picture that the bytes encode, at ``draft`` pixels a side or more where its format makes that quicker."""
    import numpy as np
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise UnshowableError("too large")
            if draft is not None:
                picture.draft("RGB", (draft, draft))
            if picture.mode.startswith(("I", "F")):  # 16 bits and more: Pillow would cut them off at 255
                return from_array(np.asarray(picture, dtype=np.float32), *_range_of(picture))
            return ImageOps.exif_transpose(picture).convert("RGBA")
    except UnshowableError:
        raise
    except Image.DecompressionBombError:
        raise UnshowableError("too large") from None
    except Exception as exc:  # a decoder may fail in any way on bytes it did not expect
        logger.debug("a picture cannot be decoded: %s", exc)
        raise UnshowableError("broken") from exc


def _range_of(picture: Image.Image) -> tuple[float, float]:
    low, high = picture.getextrema()
    return float(low), float(high)  # type: ignore[arg-type]


def from_array(pixels: Array, low: float, high: float) -> Image.Image:
    """The picture of numbers of which ``low`` is black and ``high`` is white; bytes are as they are."""
    import numpy as np
    from PIL import Image

    if pixels.dtype != np.uint8:
        scaled = (np.nan_to_num(pixels, nan=low, posinf=high, neginf=low) - low) / ((high - low) or 1.0)
        pixels = np.round(255 * np.clip(scaled, 0, 1)).astype(np.uint8)
    return Image.fromarray(pixels).convert("RGBA")

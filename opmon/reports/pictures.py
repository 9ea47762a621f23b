"""A contact sheet of pictures with captions, from whatever production logged as a picture."""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from opmon.errors import InputError
from opmon.reports.text import shown
from opmon.types import Array

if TYPE_CHECKING:
    from PIL import Image, ImageFont

logger = logging.getLogger(__name__)

MAX_TILES = 64
MAX_BYTES = 32 * 1024 * 1024
"""The most bytes of one encoded picture that are opened."""
MAX_PIXELS = 40_000_000
"""The most pixels of one picture that are decoded (an 8k frame has 33 million)."""

_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")
_TILE, _GAP, _CAPTION = 104, 12, 20
_COLUMNS = 8
_PAPER, _INK, _BLANK = (255, 255, 255), (40, 44, 52), (208, 212, 218)


Pixels: TypeAlias = Array | bytes | str
"""A picture as numbers, as encoded bytes, or the word for what is wrong with it."""


class _UnshowableError(Exception):
    """Why a tile is grey, in a word or two."""


def picture_grid(images: Sequence[object], captions: Sequence[str], path: Path) -> int:
    """Writes a PNG of the first :data:`MAX_TILES` pictures with a caption each; returns how many tiles it has.

    A picture is an array (height × width, with 1, 3 or 4 channels last or first; a flat one where it is square), nested
    lists of numbers, or encoded bytes (PNG, JPEG, GIF, BMP, WebP, TIFF). Numbers that are not bytes are scaled over
    all pictures together. What cannot be shown becomes a grey tile with a word that says why.
    """
    from PIL import Image, ImageDraw

    if len(images) != len(captions):
        raise InputError(f"one caption per picture; got {len(images)} pictures and {len(captions)} captions")
    tiles = _tiles(images[:MAX_TILES])
    columns = max(1, min(_COLUMNS, len(tiles)))
    rows = max(1, math.ceil(len(tiles) / columns))
    size = (columns * (_TILE + _GAP) + _GAP, rows * (_TILE + _CAPTION + _GAP) + _GAP)
    sheet = Image.new("RGB", size, _PAPER)
    pen, font = ImageDraw.Draw(sheet), _font(12)
    for index, tile in enumerate(tiles):
        left = _GAP + (index % columns) * (_TILE + _GAP)
        top = _GAP + (index // columns) * (_TILE + _CAPTION + _GAP)
        sheet.paste(tile, (left, top))
        caption = _fitted(shown(captions[index], 60), font, _TILE)
        pen.text((left + _TILE / 2, top + _TILE + 3), caption, font=font, fill=_INK, anchor="ma")
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path, format="PNG", optimize=True)
    return len(tiles)


def _tiles(images: Sequence[object]) -> list[Image.Image]:
    arrays = [_array(image) for image in images]
    low, high = _range([array for array in arrays if not isinstance(array, (str, bytes))])
    return [_tile(array, low, high) for array in arrays]


def _array(image: object) -> Pixels:
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
    return _arranged(pixels)


def _arranged(pixels: Array) -> Array | str:
    if pixels.size == 0:
        return "empty"
    if pixels.ndim == 1:
        side = math.isqrt(pixels.size)
        return pixels.reshape(side, side) if side * side == pixels.size else "no picture"
    if pixels.ndim == 4 and pixels.shape[0] == 1:
        pixels = pixels[0]
    if pixels.ndim == 3 and pixels.shape[-1] not in (1, 3, 4) and pixels.shape[0] in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    if pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[-1] in (3, 4)):
        return pixels
    return "no picture"


def _range(arrays: Sequence[Array]) -> tuple[float, float]:
    """What is black and what is white, for all pictures that are not made of bytes."""
    import numpy as np

    numbers = [array[np.isfinite(array)] for array in arrays if array.dtype != np.uint8]
    numbers = [array for array in numbers if array.size]
    if not numbers:
        return 0.0, 1.0
    low, high = float(min(a.min() for a in numbers)), float(max(a.max() for a in numbers))
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and 128 <= high <= 255:
        return 0.0, 255.0
    return (low, high) if high > low else (low, low + 1)


def _tile(pixels: Pixels, low: float, high: float) -> Image.Image:
    try:
        if isinstance(pixels, str):
            raise _UnshowableError(pixels)
        picture = _decoded(pixels) if isinstance(pixels, bytes) else _from_array(pixels, low, high)
        return _framed(picture)
    except _UnshowableError as exc:
        return _grey(str(exc))


def _decoded(content: bytes) -> Image.Image:
    import numpy as np
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise _UnshowableError("too large")
            picture.draft("RGB", (2 * _TILE, 2 * _TILE))
            if picture.mode.startswith(("I", "F")):  # 16 bits and more: Pillow would cut them off at 255
                return _from_array(np.asarray(picture, dtype=np.float32), *_range_of(picture))
            return ImageOps.exif_transpose(picture).convert("RGBA")
    except _UnshowableError:
        raise
    except Image.DecompressionBombError:
        raise _UnshowableError("too large") from None
    except Exception as exc:  # a decoder may fail in any way on bytes it did not expect
        logger.debug("a picture cannot be decoded: %s", exc)
        raise _UnshowableError("broken") from exc


def _range_of(picture: Image.Image) -> tuple[float, float]:
    low, high = picture.getextrema()
    return float(low), float(high)  # type: ignore[arg-type]


def _from_array(pixels: Array, low: float, high: float) -> Image.Image:
    import numpy as np
    from PIL import Image

    if pixels.dtype != np.uint8:
        scaled = (np.nan_to_num(pixels, nan=low, posinf=high, neginf=low) - low) / ((high - low) or 1.0)
        pixels = np.round(255 * np.clip(scaled, 0, 1)).astype(np.uint8)
    return Image.fromarray(pixels).convert("RGBA")


def _framed(picture: Image.Image) -> Image.Image:
    """The picture as large as fits, centred on a light square; small ones enlarged pixel by pixel."""
    from PIL import Image

    scale = _TILE / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    if scale < 1:
        picture.thumbnail(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
        picture = picture.resize(size, Image.Resampling.LANCZOS) if picture.size != size else picture
    else:
        picture = picture.resize(size, Image.Resampling.NEAREST)
    tile = Image.new("RGB", (_TILE, _TILE), (240, 242, 245))
    tile.paste(picture, ((_TILE - size[0]) // 2, (_TILE - size[1]) // 2), picture)
    return tile


def _grey(word: str) -> Image.Image:
    from PIL import Image, ImageDraw

    tile = Image.new("RGB", (_TILE, _TILE), _BLANK)
    ImageDraw.Draw(tile).text((_TILE / 2, _TILE / 2), word, font=_font(13), fill=_INK, anchor="mm")
    return tile


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """DejaVu Sans, which comes with matplotlib and knows more scripts than Pillow's own."""
    import matplotlib
    from PIL import ImageFont

    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(str(file), size) if file.exists() else ImageFont.load_default(size)


def _fitted(caption: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> str:
    if font.getlength(caption) <= width:
        return caption
    while caption and font.getlength(caption + "…") > width:
        caption = caption[:-1]
    return caption + "…"

"""A contact sheet of pictures with captions, from whatever production logged as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.errors import InputError
from opmon.reports.lettering import font_file, written
from opmon.reports.pixels import Pixels, UnshowableError, arranged, decoded, from_array, range_of_all
from opmon.reports.text import shown

if TYPE_CHECKING:
    from PIL import Image, ImageFont

MAX_TILES = 64
_TILE, _GAP, _CAPTION = 104, 12, 20
_COLUMNS = 8
_PAPER, _INK, _BLANK = (255, 255, 255), (40, 44, 52), (208, 212, 218)


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
    pen = ImageDraw.Draw(sheet)
    for index, tile in enumerate(tiles):
        left = _GAP + (index % columns) * (_TILE + _GAP)
        top = _GAP + (index // columns) * (_TILE + _CAPTION + _GAP)
        sheet.paste(tile, (left, top))
        words = shown(captions[index], 60)
        font = _font(12, words)
        caption = _fitted(written(words), font, _TILE)
        pen.text((left + _TILE / 2, top + _TILE + 3), caption, font=font, fill=_INK, anchor="ma")
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path, format="PNG", optimize=True)
    return len(tiles)


def _tiles(images: Sequence[object]) -> list[Image.Image]:
    arrays = [arranged(image) for image in images]
    low, high = range_of_all([array for array in arrays if not isinstance(array, (str, bytes))])
    return [_tile(array, low, high) for array in arrays]


def _tile(pixels: Pixels, low: float, high: float) -> Image.Image:
    try:
        if isinstance(pixels, str):
            raise UnshowableError(pixels)
        picture = decoded(pixels, 2 * _TILE) if isinstance(pixels, bytes) else from_array(pixels, low, high)
        return _framed(picture)
    except UnshowableError as exc:
        return _grey(str(exc))


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


def _font(size: int, text: str = "") -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font that writes most of a text: matplotlib's own, which knows more scripts than Pillow's, or another."""
    from PIL import ImageFont

    file = font_file(text)
    return ImageFont.truetype(str(file), size) if file.exists() else ImageFont.load_default(size)


def _fitted(caption: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> str:
    if font.getlength(caption) <= width:
        return caption
    while caption and font.getlength(caption + "…") > width:
        caption = caption[:-1]
    return caption + "…"

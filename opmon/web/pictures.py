"""A picture as a browser shows it, from whatever the log held."""

from __future__ import annotations

import io

from opmon.reports.pixels import MAX_PIXELS, UnshowableError, arranged, decoded, from_array, range_of_all
from opmon.types import Array
from opmon.web.refused import Refused

_AS_THEY_ARE = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
"""What every browser shows by itself; all else, and whatever has more than eight bits, becomes a PNG."""


def for_browser(cell: object) -> tuple[bytes, str]:
    """The bytes of a picture and their media type; a refusal where there is none that can be shown."""
    try:
        pixels = arranged(cell)
        if isinstance(pixels, str):
            raise UnshowableError(pixels)
        if not isinstance(pixels, bytes):
            return _png(pixels), "image/png"
        media_type = _known(pixels)
        return (pixels, media_type) if media_type else (_png(pixels), "image/png")
    except UnshowableError as exc:
        raise Refused(422, f"this picture cannot be shown: {exc}") from exc


def _known(content: bytes) -> str | None:
    """The media type of a picture that a browser may be given as it is; None where it must be made anew."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=tuple(_AS_THEY_ARE)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise UnshowableError("it has too many pixels")
            eight_bits = not picture.mode.startswith(("I", "F"))
            return _AS_THEY_ARE[picture.format or ""] if eight_bits else None
    except UnshowableError:
        raise
    except Image.DecompressionBombError:
        raise UnshowableError("it has too many pixels") from None
    except Exception:  # noqa: BLE001 - a decoder may fail in any way on bytes it did not expect
        return None


def _png(pixels: Array | bytes) -> bytes:
    picture = decoded(pixels) if isinstance(pixels, bytes) else from_array(pixels, *range_of_all([pixels]))
    if picture.getchannel("A").getextrema() == (255, 255):
        picture = picture.convert("RGB")
    kept = io.BytesIO()
    picture.save(kept, format="PNG", compress_level=1)
    return kept.getvalue()

"""The bytes of an encoded picture, from however a log holds it."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

MAX_BYTES = 32 << 20


def encoded(cell: object, column: str, folder: Path | None) -> bytes | str:
    """The bytes that a cell of ``column`` holds, or the file that it names; or, as text, why there are none.

    Paths are below ``folder``, and nothing outside of it is read.
    """
    if isinstance(cell, dict):  # as the datasets library keeps pictures
        cell = cell.get("bytes") or cell.get("path")
    if cell is None:
        return f"column {column!r} is empty"
    if isinstance(cell, str):
        cell = _in_text(cell, column) if folder is None or cell.startswith("data:") else _file(cell, column, folder)
    if isinstance(cell, str):
        return cell
    if not isinstance(cell, bytes):
        return f"column {column!r} holds a {type(cell).__name__}, not a picture"
    return cell if len(cell) <= MAX_BYTES else f"column {column!r} holds a picture above {MAX_BYTES} bytes"


def _in_text(text: str, column: str) -> bytes | str:
    """A picture in base64, as ``data:image/png;base64,...`` or without that beginning."""
    if len(text) > 2 * MAX_BYTES:
        return f"column {column!r} holds a picture above {MAX_BYTES} bytes"
    try:
        return base64.b64decode(text.partition(",")[2] if text.startswith("data:") else text, validate=True)
    except (binascii.Error, ValueError):
        return (
            f"column {column!r} holds text that is no base64; of paths say with inputs.image.folder below which folder"
        )


def _file(path: str, column: str, folder: Path) -> bytes | str:
    folder = folder.resolve()
    file = (folder / path).resolve()
    if not file.is_relative_to(folder):
        return f"column {column!r} names a file outside of {folder}"
    if not file.is_file():
        return f"column {column!r} names a file that is not there: {path[:120]}"
    if file.stat().st_size > MAX_BYTES:
        return f"column {column!r} names a picture above {MAX_BYTES} bytes"
    return file.read_bytes()

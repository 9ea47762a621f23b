"""The bytes of an encoded picture, from however a log holds it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from opmon.stores import AT_ONCE, SCHEMES, StoreFolder, scheme_of
from opmon.wording import counted

MAX_BYTES = 32 << 20


def encoded_all(cells: Iterable[object], column: str, folder: Path | str | None) -> list[bytes | str]:
    """What ``encoded`` gives for each cell; many at once where they are fetched from a store."""
    with ThreadPoolExecutor(readers(folder)) as pool:
        return list(pool.map(lambda cell: encoded(cell, column, folder), cells))


def unreadable(found: Sequence[bytes | str]) -> str | None:
    """How many of some pictures there are not, with why not of the first; None where all are there.

    >>> unreadable([b"1", "column 'photo' is empty", "column 'photo' is empty"])
    "2 of 3 pictures cannot be read; of the first: column 'photo' is empty"
    """
    reasons = [each for each in found if isinstance(each, str)]
    if not reasons:
        return None
    return f"{len(reasons):,} of {counted(len(found), 'picture')} cannot be read; of the first: {reasons[0]}"


def readers(folder: Path | str | None) -> int:
    """How many pictures are read side by side: from a store it is waiting, from a disk decoding."""
    return AT_ONCE if isinstance(folder, str) else 2


def encoded(cell: object, column: str, folder: Path | str | None) -> bytes | str:
    """The bytes that a cell of ``column`` holds, or the file that it names; or, as text, why there are none.

    Names are paths below ``folder``, a path or the URL of a store, or whole URLs; nothing outside of it is read. An
    error where the store does not answer.
    """
    if isinstance(cell, dict):  # as the datasets library keeps pictures
        cell = cell.get("bytes") or cell.get("path")
    if cell is None:
        return f"column {column!r} is empty"
    if isinstance(cell, str):
        cell = _named(cell, column, folder)
    if isinstance(cell, str):
        return cell
    if not isinstance(cell, bytes):
        return f"column {column!r} holds a {type(cell).__name__}, not a picture"
    return cell if len(cell) <= MAX_BYTES else f"column {column!r} holds a picture above {MAX_BYTES} bytes"


def _named(cell: str, column: str, folder: Path | str | None) -> bytes | str:
    """The picture that a text holds or names."""
    if cell.startswith("data:"):
        return _in_text(cell, column)
    scheme = scheme_of(cell)
    if scheme is not None and scheme not in (*SCHEMES, "file"):
        return (
            f"column {column!r} holds an address ({scheme}://…), and pictures are read from inputs.image.folder alone"
        )
    if folder is None and scheme is not None:
        return (
            f"column {column!r} holds an address ({scheme}://…): say with inputs.image.folder below which folder, such "
            f"as s3://bucket/pictures, they may be read"
        )
    if folder is None:
        return _in_text(cell, column)
    if isinstance(folder, str):
        return _object(cell, column, StoreFolder(folder))
    if scheme not in (None, "file"):
        return f"column {column!r} names a file outside of {folder}"
    return _file(cell.removeprefix("file://"), column, folder)


def _object(name: str, column: str, folder: StoreFolder) -> bytes | str:
    path = folder.path_of(name)
    if path is None:
        return f"column {column!r} names an object outside of {folder.url}"
    found = folder.read(path, MAX_BYTES)
    return found if isinstance(found, bytes) else f"column {column!r} names {found}"


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

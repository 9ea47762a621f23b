"""Examples of a tomography in one piece of bytes: some inputs under some tests, as pictures or as text."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_INDEX = "examples.json"
_LARGEST = 160
"""Pixels of the longer side: a larger picture is made smaller."""
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class Example:
    """Inputs under one test: as pictures (height × width × channels in [0, 1]), or as texts."""

    label: str
    share: float
    measured: bool
    pictures: tuple[NDArray[np.float32], ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExampleKept:
    """The same as it is read back: pictures have names."""

    label: str
    share: float
    measured: bool
    pictures: tuple[str, ...]
    texts: tuple[str, ...]


def packed(examples: Sequence[Example]) -> bytes:
    """All of them in one piece."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        told = []
        for place, each in enumerate(examples):
            names = [f"{place}-{number}.png" for number in range(len(each.pictures))]
            for name, picture in zip(names, each.pictures, strict=True):
                archive.writestr(name, _png(picture))
            told.append(
                {
                    "label": each.label,
                    "share": each.share,
                    "measured": each.measured,
                    "pictures": names,
                    "texts": [text[:_LONGEST] for text in each.texts],
                }
            )
        archive.writestr(_INDEX, json.dumps(told), zipfile.ZIP_DEFLATED)
    return content.getvalue()


def unpacked(content: bytes) -> list[ExampleKept]:
    """What :func:`packed` made a piece of, without the pictures themselves."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        told = json.loads(archive.read(_INDEX))
    return [
        ExampleKept(**{**each, "pictures": tuple(each["pictures"]), "texts": tuple(each["texts"])}) for each in told
    ]


def picture(content: bytes, name: str) -> bytes | None:
    """One picture as PNG; None where there is none of that name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if name == _INDEX or name not in archive.namelist():
            return None
        return archive.read(name)


def _png(pixels: NDArray[np.float32]) -> bytes:
    from PIL import Image

    whole = np.rint(255 * np.clip(np.nan_to_num(pixels), 0, 1)).astype(np.uint8)
    shown = Image.fromarray(whole[..., 0] if whole.shape[2] == 1 else whole[..., :3])
    shown.thumbnail((_LARGEST, _LARGEST))
    content = io.BytesIO()
    shown.save(content, format="PNG", optimize=True)
    return content.getvalue()

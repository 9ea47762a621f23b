"""An input as an annotator is to see it: its pictures, its text, its values by name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from opmon.config import MonitorSettings
from opmon.store import attachments
from opmon.types import Json

Kind: TypeAlias = Literal["picture", "text", "value"]

_FEWEST = 64
"""A flat list of fewer numbers is no picture, square as it may be."""
_LONG = 80
"""Text that is longer is read, not looked up in a table."""
_HIDDEN = frozenset({"model prediction"})
"""What is told beside the input, not in it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One part of an input."""

    name: str
    kind: Kind
    value: Json
    is_output: bool = False
    """Whether it is the model's output, which is judged."""


def parts_of(settings: MonitorSettings, payload: Mapping[str, Json]) -> list[Shown]:
    """The parts of an input: pictures first, then text, then the model's features in their order, then the rest; an
    output that is to be judged comes last."""
    payload = {name: value for name, value in payload.items() if name not in _HIDDEN}
    kinds = dict(_kinds(settings, payload))
    order: dict[Kind, int] = {"picture": 0, "text": 1, "value": 2}
    features = {name: place for place, name in enumerate(settings.inputs.features or ())}
    output = settings.judged_column
    names = sorted(payload, key=lambda name: (name == output, order[kinds[name]], features.get(name, len(features))))
    return [Shown(name, kinds[name], payload[name], name == output) for name in names]


def _kinds(settings: MonitorSettings, payload: Mapping[str, Json]) -> Iterator[tuple[str, Kind]]:
    image, text = settings.inputs.image, settings.inputs.text
    pictures = {settings.columns.image, None if image is None else image.column}
    texts = {settings.columns.text, None if text is None else text.column}
    lists = [name for name, value in payload.items() if isinstance(value, list)]
    output = settings.judged_column
    long = [name for name, value in payload.items() if isinstance(value, str) and _is_long(value) and name != output]
    tensors = {settings.inputs.tensor} if settings.inputs.tensor else {*lists[:1]} if len(lists) == 1 else set()
    for name, value in payload.items():
        named = isinstance(value, str)  # a picture that could not be had is told by its name
        is_picture = name in pictures and value is not None and not named
        if _is_bytes(value) or is_picture or (name in tensors and _is_square(value)):
            yield name, "picture"
        elif (name in texts or name == output or long == [name]) and named:
            yield name, "text"
        else:
            yield name, "value"


def _is_long(text: str) -> bool:
    return len(text) > _LONG or "\n" in text


def _is_bytes(value: Json) -> bool:
    return attachments.field_of(value) is not None or attachments.content_of(value) is not None


def _is_square(value: Json) -> bool:
    """Whether numbers look like a picture's: rows of them, or as many as make a square, grey or in colour."""
    if not isinstance(value, list) or not value:
        return False
    if isinstance(value[0], list):
        return True
    return len(value) >= _FEWEST and any(_is_whole_square(len(value) / colours) for colours in (1, 3))


def _is_whole_square(size: float) -> bool:
    return size == int(size) and math.isqrt(int(size)) ** 2 == size

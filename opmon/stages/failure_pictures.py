"""The failures as pictures, where the inputs are pictures: arrays, encoded bytes, or paths to files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from opmon.config import MonitorSettings
from opmon.reports.failures import Failure
from opmon.reports.pictures import MAX_TILES, picture_grid
from opmon.scoring.inputs.encoded import encoded
from opmon.stages.payloads import row_of
from opmon.types import Json

_FEWEST = 64
"""A flat list of fewer numbers is no picture, square as it may be."""


def draw_failures(settings: MonitorSettings, failures: Sequence[Failure], path: Path) -> tuple[bytes | None, int]:
    """A PNG with a tile for each of the first failures, which is also written to ``path``, and how many it shows.

    None where the inputs are no pictures, or none of them can be had.
    """
    column = picture_column(settings, [failure.payload for failure in failures])
    if column is None:
        return None, 0
    some = failures[:MAX_TILES]
    pictures = [picture_of(settings, column, failure.payload) for failure in some]
    if all(picture is None for picture in pictures):
        return None, 0
    shown = picture_grid(pictures, [failure.caption for failure in some], path)
    return path.read_bytes(), shown


def picture_column(settings: MonitorSettings, payloads: Sequence[Mapping[str, Json]]) -> str | None:
    """Where the pictures are: as configured, or the only column that holds what looks like one in every row."""
    image = settings.inputs.image
    named = settings.columns.image or (None if image is None else image.column)
    if named is not None or not payloads:
        return named
    lists = [name for name, value in payloads[0].items() if isinstance(value, list)]
    column = settings.inputs.tensor or (lists[0] if len(lists) == 1 else None)
    if column is None or not all(_looks_like_one(payload.get(column)) for payload in payloads):
        return None
    return column


def _looks_like_one(value: object) -> bool:
    if isinstance(value, dict):
        return "base64" in value
    if not isinstance(value, list) or not value:
        return False
    return isinstance(value[0], list) or (len(value) >= _FEWEST and math.isqrt(len(value)) ** 2 == len(value))


def picture_of(settings: MonitorSettings, column: str, payload: Mapping[str, Json]) -> object:
    """What the picture is made of; None where it cannot be had, which was told when the input was drawn."""
    cell = row_of(payload).get(column)
    if isinstance(cell, list):
        return cell
    image = settings.inputs.image
    found = encoded(cell, column, None if image is None else image.folder)
    return None if isinstance(found, str) else found

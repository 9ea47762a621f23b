"""Documents as JSON that every database takes: it has no infinity, and PostgreSQL refuses what Python writes for it."""

from __future__ import annotations

import json
import math
from uuid import uuid4

_BEYOND = {math.inf: "1e999", -math.inf: "-1e999"}
"""JSON numbers beyond all that a float holds: they are read as infinity again."""


def as_json(document: object) -> str:
    """The document as JSON. What is no number at all is null.

    >>> as_json({"low": 0.5, "high": float("inf")}), json.loads(as_json([float("-inf")]))
    ('{"low": 0.5, "high": 1e999}', [-inf])
    """
    try:
        return json.dumps(document, allow_nan=False)
    except ValueError:
        marks = {size: uuid4().hex for size in _BEYOND}  # in no text that somebody wrote
        text = json.dumps(_marked(document, marks), allow_nan=False)
    for size, mark in marks.items():
        text = text.replace(f'"{mark}"', _BEYOND[size])
    return text


def _marked(value: object, marks: dict[float, str]) -> object:
    if isinstance(value, dict):
        return {key: _marked(each, marks) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_marked(each, marks) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return marks.get(value)
    return value

"""Views as plain values for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import cast

from opmon.quantities import Quantity
from opmon.types import Json


def as_json(value: object) -> str:
    """The text of a file that every program reads: JSON has no word for a bound that there is none of.

    >>> as_json({"low": 0.5, "high": math.inf})
    '{\\n  "low": 0.5,\\n  "high": null\\n}'
    """
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def plain(value: object) -> Json:
    """Dataclasses as dicts, moments as ISO text, an infinite bound as None.

    A quantity is its name and its unit, beside the values that it is of.

    >>> from opmon.queries.standing import ReasonView, StandingView
    >>> plain(StandingView("degraded", (ReasonView("floor", "alarm", 7, "below 90 %"),)))["reasons"]
    [{'rule': 'floor', 'state': 'alarm', 'round': 7, 'message': 'below 90 %'}]
    """
    if is_dataclass(value) and not isinstance(value, Quantity):
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        values = {name: plain(inner) for name, inner in own.items()}
        units = [inner.unit for inner in own.values() if isinstance(inner, Quantity)]
        return values | {"unit": units[0]} if units else values
    match value:
        case Quantity():
            return value.name
        case Enum():
            return plain(value.value)
        case datetime():
            return value.isoformat()
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {key: plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _:
            return cast(Json, value)

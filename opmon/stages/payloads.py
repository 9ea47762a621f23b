"""What an annotator gets to see of an input, as JSON."""

from __future__ import annotations

import base64
import datetime
import decimal
import math
from collections.abc import Collection, Mapping

from opmon.config import ColumnSettings
from opmon.types import Json


def payload_of(
    row: Mapping[str, object], columns: ColumnSettings, answers: Collection[str] = (), output: str | None = None
) -> dict[str, Json]:
    """The row without the model's own words: a prediction that is shown anchors the annotator.

    Nor is anything shown that they lie in, or that the source says are ``answers``. An ``output`` that is to be judged
    is shown, and comes last.
    """
    told = [name for name in (columns.prediction, columns.model_version, *columns.scores, *answers) if name]
    hidden = {name for name in row if any(each == name or each.startswith((f"{name}.", f"{name}[")) for each in told)}
    seen = {name: _json(value) for name, value in row.items() if name not in hidden and name != columns.id}
    return seen if output is None else {**seen, output: _json(row.get(output))}


def _json(value: object) -> Json:
    """
    >>> _json({"pixels": [0.5, float("nan")], "raw": b"ab"})
    {'pixels': [0.5, None], 'raw': {'base64': 'YWI='}}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return str(value)
    return str(value)


def row_of(payload: Mapping[str, Json]) -> dict[str, object]:
    """The row again, as a model's inputs are read from: bytes, such as pictures, are bytes.

    >>> row_of({"raw": {"base64": "YWI="}, "pixels": [0.5, None]})
    {'raw': b'ab', 'pixels': [0.5, None]}
    """
    return {name: _restored(value) for name, value in payload.items()}


def _restored(value: Json) -> object:
    if isinstance(value, Mapping):
        if set(value) == {"base64"} and isinstance(value["base64"], str):
            return base64.b64decode(value["base64"])
        return {key: _restored(item) for key, item in value.items()}
    return value

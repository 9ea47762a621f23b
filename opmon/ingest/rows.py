"""Plain JSON: rows with an input's columns, requests as model servers take them, and requests with their responses."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from opmon.ingest.event import Event, Kind
from opmon.ingest.moments import moment_of
from opmon.ingest.refused import Refused
from opmon.ingest.texts import as_text, json_of
from opmon.types import Json

MOST_ROWS = 100_000
_PAYLOADS = ("dataframe_split", "dataframe_records", "instances")
_BESIDE_INPUTS = {"id", "inputs", "outputs", "parameters", "params"}
LONGEST_ID = 500


def of_json(value: Json, key: str, at: str) -> list[Event]:
    """The events in a JSON body; ``key`` is what the sender calls the whole request, or nothing."""
    values = value if isinstance(value, list) else [value]
    if len(values) > MOST_ROWS:
        raise Refused(413, f"{len(values):,} rows in one request; {MOST_ROWS:,} are the most")
    several = len(values) > 1
    return [
        event
        for place, each in enumerate(values)
        for event in _of_one(each, f"{key}#{place}" if key and several else key, at)
    ]


def of_lines(body: bytes, key: str, at: str) -> list[Event]:
    """The events in JSON lines."""
    values = [json_of(line) for line in body.split(b"\n") if line.strip()]
    return of_json(values, key, at)


def id_of(value: Mapping[str, Json], key: str = "id") -> str | None:
    """The id that an object has; None where it has none."""
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        return None
    text = str(found)
    if len(text) > LONGEST_ID:
        raise Refused(400, f"{key} has {len(text):,} characters; {LONGEST_ID} are the most")
    return text


def is_request(value: Mapping[str, Json]) -> bool:
    """Whether an object is a request to a model and not a row.

    >>> is_request({"inputs": [{"name": "x", "data": [1]}]}), is_request({"age": 3})
    (True, False)
    """
    if any(isinstance(value.get(name), list | Mapping) for name in _PAYLOADS):
        return True
    return isinstance(value.get("inputs"), list | Mapping) and set(value) <= _BESIDE_INPUTS


def _of_one(value: Json, key: str, at: str) -> list[Event]:
    if not isinstance(value, Mapping) or not value:
        raise Refused(
            400, f"a row is an object of columns such as {{'id': 'a1', 'age': 42}}; got {as_text(value)[:60]}"
        )
    own = id_of(value)
    name, told = own or key, own or key or uuid.uuid4().hex
    if "request" in value and set(value) <= {"id", "request", "response", "timestamp"}:
        at = moment_of(value.get("timestamp"), at)
        if value.get("response") is None:
            return [Event(Kind.REQUEST, name, told, at, as_text(value["request"]))]
        return [
            Event(kind, name or told, told, at, as_text(value[side]))
            for kind, side in ((Kind.REQUEST, "request"), (Kind.RESPONSE, "response"))
        ]
    if is_request(value):
        return [Event(Kind.REQUEST, name, told, at, as_text(dict(value)))]
    return [Event(Kind.ROW, name, told, at, as_text(dict(value)))]

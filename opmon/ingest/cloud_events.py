"""CloudEvents as KServe's and Seldon's loggers send them: headers with a payload, or JSON, one or many."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from opmon.ingest.event import Event, Kind
from opmon.ingest.moments import moment_of
from opmon.ingest.refused import Refused
from opmon.ingest.rows import LONGEST_ID, MOST_ROWS, id_of
from opmon.ingest.texts import as_text, json_of, require_flat, text_of
from opmon.types import Json

STRUCTURED, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
_TEXTS = ("text/plain", "text/csv")


def of_headers(headers: Mapping[str, str], body: bytes, at: str) -> list[Event]:
    """The event whose attributes are the headers ``ce-…``, and whose data is the body."""
    attributes: dict[str, Json] = {name[3:]: value for name, value in headers.items() if name.startswith("ce-")}
    kind = headers.get("content-type", "application/json")
    return [_event(attributes, _data(kind, body), at)]


def of_json(value: Json, at: str) -> list[Event]:
    """The events in a JSON body, of which each is an object or all are a list."""
    values = value if isinstance(value, list) else [value]
    if len(values) > MOST_ROWS:
        raise Refused(413, f"{len(values):,} events in one request; {MOST_ROWS:,} are the most")
    return [_of_object(each, at) for each in values]


def _of_object(value: Json, at: str) -> Event:
    if not isinstance(value, Mapping):
        raise Refused(400, "a CloudEvent is a JSON object with specversion, type, source and id")
    encoded, kind = value.get("data_base64"), value.get("datacontenttype")
    if encoded is not None:
        data = _data(kind if isinstance(kind, str) else "application/json", _decoded(encoded))
    elif isinstance(value.get("data"), str) and isinstance(kind, str) and _plain(kind) in _TEXTS:
        data = str(value["data"])
    elif "data" in value:
        data = as_text(value["data"])
    else:
        raise Refused(400, "the CloudEvent has no data")
    return _event({name: told for name, told in value.items() if name not in ("data", "data_base64")}, data, at)


def _event(attributes: Mapping[str, Json], data: str, came: str) -> Event:
    told = {name: _attribute(attributes, name) for name in ("specversion", "type", "source", "id")}
    if not told["specversion"].startswith(("0.3", "1.")):
        raise Refused(400, f"CloudEvents of version {told['specversion'][:20]} are not known; 1.0 and 0.3 are")
    at = moment_of(attributes.get("time"), came)
    kind = told["type"].rsplit(".", 1)[-1].lower()
    if kind in ("request", "response"):  # of a pair: KServe gives both one id, Seldon a request id
        pair = id_of(attributes, "requestid") or told["id"]
        name = "\0".join((told["source"], id_of(attributes, "modelid") or "", pair))
        return Event(Kind.REQUEST if kind == "request" else Kind.RESPONSE, name, pair, at, data)
    row = json_of(data.encode())
    if not isinstance(row, Mapping) or not row or kind == "feedback":
        raise Refused(422, f"an event of type {told['type'][:80]!r} is no input: its data must be an object of columns")
    return Event(Kind.ROW, f"{told['source']}\0{told['id']}", id_of(row) or told["id"], at, data)


def _attribute(attributes: Mapping[str, Json], name: str) -> str:
    value = attributes.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_ID:
        raise Refused(400, f"the CloudEvent needs {name!r}: a text of at most {LONGEST_ID} characters")
    return value


def _data(kind: str, body: bytes) -> str:
    """The payload as text: JSON, which must be right, or plain text and CSV."""
    plain = _plain(kind)
    if plain.endswith("json"):
        json_of(body)
    elif plain not in _TEXTS:
        raise Refused(415, f"data of type {plain[:80]!r} is not read; JSON, text/csv and text/plain are")
    require_flat(body)
    return text_of(body)


def _plain(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()


def _decoded(value: Json) -> bytes:
    try:
        return base64.b64decode(value if isinstance(value, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        raise Refused(400, "data_base64 is not base64") from None

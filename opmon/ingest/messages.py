"""What the body of a request holds: events, by its headers."""

from __future__ import annotations

from collections.abc import Mapping

from opmon.ingest import cloud_events, rows
from opmon.ingest.event import Event
from opmon.ingest.refused import Refused
from opmon.ingest.texts import json_of

_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines")


def events_of(headers: Mapping[str, str], body: bytes, at: str) -> list[Event]:
    """The events in a request; headers by their names in small letters, ``at`` is when it came."""
    if not body.strip():
        raise Refused(400, "the body is empty")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in (cloud_events.STRUCTURED, cloud_events.BATCH):
        return cloud_events.of_json(json_of(body), at)
    if "ce-specversion" in headers or "ce-id" in headers:
        return cloud_events.of_headers(headers, body, at)
    key = headers.get("idempotency-key", "")[: rows.LONGEST_ID]
    if kind in _LINES:
        return rows.of_lines(body, key, at)
    if kind == "application/json":
        return rows.of_json(json_of(body), key, at)
    raise Refused(
        415,
        f"content-type {kind[:80] or 'none'!r} is not read; send application/json, application/x-ndjson or CloudEvents",
    )

"""The parts of an input as the API tells them: where its pictures are, and all else as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

from pydantic import JsonValue

from opmon.config import MonitorSettings
from opmon.store import attachments
from opmon.types import Json
from opmon.values import as_browsers_read
from opmon.web.api.models import FieldOut
from opmon.web.root import under
from opmon.web.shown import Shown, parts_of


def fields_of(settings: MonitorSettings, key: str, payload: Mapping[str, Json]) -> list[FieldOut]:
    """The parts of the input of the task that ``key`` names."""
    return [_field(part, key) for part in parts_of(settings, payload)]


def _field(part: Shown, key: str) -> FieldOut:
    if part.kind == "picture":
        url = _address(key, part.name, attachments.field_of(part.value))
        return FieldOut(name=part.name, kind="picture", url=url, is_output=part.is_output)
    value = cast(JsonValue, as_browsers_read(part.value))
    return FieldOut(name=part.name, kind=part.kind, value=value, is_output=part.is_output)


def _address(key: str, name: str, attached: str | None) -> str:
    return under(f"/api/v1/tasks/{key}/pictures/{quote(attached or name, safe='')}")

"""What Label Studio answers, checked where it is used: it may be another server, or another release."""

from __future__ import annotations

from collections.abc import Mapping

from opmon.errors import UnavailableError
from opmon.types import Json


def mapping(value: Json) -> Mapping[str, Json]:
    """The value as an object."""
    if not isinstance(value, dict):
        raise _surprise("an object", value)
    return value


def objects(value: Json) -> list[Mapping[str, Json]]:
    """The value as a list of objects."""
    if not isinstance(value, list):
        raise _surprise("a list", value)
    return [mapping(each) for each in value]


def number(value: Json) -> int:
    """The value as a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _surprise("a number", value)
    return value


def text(value: Json) -> str:
    """The value as text; null is empty."""
    if value is not None and not isinstance(value, str):
        raise _surprise("text", value)
    return value or ""


def _surprise(wanted: str, value: Json) -> UnavailableError:
    return UnavailableError(
        f"Label Studio answered {str(value)[:60]!r} where {wanted} is due; is url right, and the release not too old?"
    )

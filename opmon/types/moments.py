"""A check that moments carry a time zone."""

from __future__ import annotations

from datetime import datetime

from opmon.errors import InputError


def require_aware(moment: datetime, name: str) -> None:
    if moment.tzinfo is None:
        raise InputError(f"{name} must carry a time zone; got {moment.isoformat()} without one")

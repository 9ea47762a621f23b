"""An event as environment variables for a program."""

from __future__ import annotations

import json

from opmon.quantities import ACCURACY
from opmon.triggers._webhook import finite
from opmon.types import Document

LONGEST = 32_000
"""Characters of one variable: the system's limit is 128 kB."""


def variables(event: Document) -> dict[str, str]:
    """``OPMON_EVENT`` holds the whole event as JSON, the others its parts.

    >>> found = variables({"id": "7f", "type": "opmon.alarm", "model": {"name": "digits", "version": "3"}})
    >>> found["OPMON_EVENT_TYPE"], found["OPMON_MODEL_VERSION"]
    ('opmon.alarm', '3')
    >>> found = variables({"estimate": {"quantity": "MAE", "unit": "days", "value": 3.2}})
    >>> found["OPMON_QUANTITY"], found["OPMON_ESTIMATE"], found["OPMON_UNIT"], "OPMON_ACCURACY" in found
    ('MAE', '3.2', 'days', False)
    """
    model, estimate = event.get("model") or {}, event.get("estimate") or {}
    parts = {
        "OPMON_EVENT_ID": event.get("id"),
        "OPMON_EVENT_TYPE": event.get("type"),
        "OPMON_EVENT_AT": event.get("at"),
        "OPMON_MONITOR": event.get("monitor"),
        "OPMON_RULE": event.get("rule"),
        "OPMON_ROUND": event.get("round"),
        "OPMON_MESSAGE": event.get("message"),
        "OPMON_MODEL_NAME": model.get("name"),
        "OPMON_MODEL_VERSION": model.get("version"),
        "OPMON_MODEL_URI": model.get("uri"),
        "OPMON_QUANTITY": estimate.get("quantity"),
        "OPMON_UNIT": estimate.get("unit") or None,
        "OPMON_ESTIMATE": estimate.get("value"),
        "OPMON_ESTIMATE_LOW": estimate.get("low"),
        "OPMON_ESTIMATE_HIGH": estimate.get("high"),
        **(_accuracy(estimate) if estimate.get("quantity", ACCURACY.name) == ACCURACY.name else {}),
        "OPMON_RUN_URI": event.get("run_uri"),
        "OPMON_FAILURES_URI": event.get("failures_uri"),
        "OPMON_EVENT": json.dumps(finite(event), ensure_ascii=False, allow_nan=False, default=str),
    }
    return {name: _text(value) for name, value in parts.items() if value is not None}


def _accuracy(estimate: Document) -> dict[str, object]:
    """The names that say accuracy, of an estimate that is one."""
    return {
        "OPMON_ACCURACY": estimate.get("value"),
        "OPMON_ACCURACY_LOW": estimate.get("low"),
        "OPMON_ACCURACY_HIGH": estimate.get("high"),
    }


def _text(value: object) -> str:
    return str(value).replace("\0", " ")[:LONGEST]

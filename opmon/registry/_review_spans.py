"""A task as a trace of MLflow: one span, whose id says which task it is, so that writing it again changes nothing."""

from __future__ import annotations

import hashlib
import json
import re
import time
from typing import Any

from opmon.types import Task

_NUMBER = re.compile(r"t([1-9][0-9]{0,18})-")


def trace_id_of(key: str, experiment: str) -> str:
    """The trace of a task: its number first, so that MLflow lists tasks of one batch in their order, then a hash.

    >>> trace_id_of("t7-35af99ce5acd", "3")
    'tr-0000000000000007e5e4e89e9bec0155'
    """
    return f"tr-{_number(key, experiment):032x}"


def span_of(task: Task, experiment: str) -> Any:
    """The span that shows the task's input; MLflow keeps the task's key as the session of its trace."""
    from mlflow.entities.span import Span
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

    number, now = _number(task.key, experiment), time.time_ns()
    attributes = {
        "mlflow.traceRequestId": json.dumps(trace_id_of(task.key, experiment)),
        "mlflow.spanInputs": json.dumps(dict(task.payload), ensure_ascii=False),
        "mlflow.spanType": json.dumps("TASK"),
        "session.id": task.key,
    }
    return Span(
        ReadableSpan(
            name=f"round {task.round}",
            context=SpanContext(number, number & (1 << 64) - 1, is_remote=False, trace_flags=TraceFlags(1)),
            resource=Resource({}),
            attributes=attributes,
            start_time=now,
            end_time=now + 1_000_000,
            status=Status(StatusCode.OK),
        )
    )


def _number(key: str, experiment: str) -> int:
    """The trace's id as a number of 128 bits: ids are of the whole server, so that the experiment has a part in it."""
    digest = int.from_bytes(hashlib.sha256(f"{experiment}\0{key}".encode()).digest()[:8], "big")
    found = _NUMBER.match(key)
    first = int(found[1]) if found else int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big")
    return first << 64 | digest

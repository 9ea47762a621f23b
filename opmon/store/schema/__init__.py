"""The tables. Migrations in ``migrations/`` lead here; a test compares the two.

A row of ``rounds`` moves through ``opened → scored → drawn → labelling → estimated → closed``, unless somebody gives it
up (``abandoned``). ``slices`` is the cursor: what a monitor has read is the union of its slices, and its unique
constraint makes reading a piece twice impossible.
``labels``, ``estimates`` and ``verdicts`` are only ever added to.
A task is settled where it ``lacks`` nothing: as many annotators as it needs have spoken of it, or its truth is there.
"""

from __future__ import annotations

from opmon.store.schema.audit import audit
from opmon.store.schema.base import Key, Query, Row, UtcDateTime, metadata
from opmon.store.schema.estimates import (
    corrections,
    deliveries,
    estimates,
    events,
    failure_groups,
    measured,
    rolled,
    sliced,
    tallies,
    verdicts,
)
from opmon.store.schema.labels import (
    annotators,
    assignments,
    attachments,
    handed,
    labels,
    providers,
    sessions,
    tasks,
    truths,
)
from opmon.store.schema.robustness import tomographies
from opmon.store.schema.rounds import cycles, leases, positions, rounds, seen, set_aside, slices, ticks, waits, workers

__all__ = [
    "Key",
    "Query",
    "Row",
    "UtcDateTime",
    "annotators",
    "assignments",
    "attachments",
    "audit",
    "corrections",
    "cycles",
    "deliveries",
    "estimates",
    "events",
    "failure_groups",
    "handed",
    "labels",
    "leases",
    "measured",
    "metadata",
    "positions",
    "providers",
    "rolled",
    "rounds",
    "seen",
    "sessions",
    "set_aside",
    "sliced",
    "slices",
    "tallies",
    "tasks",
    "ticks",
    "tomographies",
    "truths",
    "verdicts",
    "waits",
    "workers",
]

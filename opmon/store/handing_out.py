"""What is shown beside a task when it is handed out: its pictures, the classes it may be of, whose monitor it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store import attachments
from opmon.store.schema import rounds
from opmon.store.speaking import named, task_by_key
from opmon.types import Json


@dataclass(frozen=True, slots=True)
class Cell:
    """One part of an input, of a monitor."""

    monitor: str
    value: Json | bytes


def latest_classes(connection: Connection, monitor: str) -> tuple[str, ...]:
    """What the model of the latest round that knows calls its classes; nothing where none does."""
    query = (
        sa.select(rounds.c.classes)
        .where(rounds.c.monitor == monitor, rounds.c.classes.is_not(None))
        .order_by(rounds.c.number.desc())
        .limit(1)
    )
    return tuple(connection.scalar(query) or ())


def monitors_of(connection: Connection, keys: Sequence[str]) -> dict[str, str]:
    """The monitors that tasks are of, by their keys; keys of other databases are left out."""
    return {key: task.monitor for key, task in named(connection, keys).items()}


def cell(connection: Connection, key: str, field: str) -> Cell | None:
    """A part of an input by its name, or the bytes that are kept of it; None where there is no such task or part."""
    task = None if "\0" in field else task_by_key(connection, key)
    if task is None:
        return None
    content = attachments.one(connection, task.id, field)
    if content is not None:
        return Cell(task.monitor, content)
    value = task.payload.get(field)
    return None if value is None else Cell(task.monitor, attachments.content_of(value) or value)

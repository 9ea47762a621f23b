"""Pictures and other bytes of payloads, in SQL: kept as bytes beside the payload, which names them.

In a payload ``{"base64": …}`` stands for bytes. It is taken out when the task is queued, and ``{"attached": field,
"type": …, "bytes": size}`` is left in its place; tasks that were queued by an earlier release have theirs inside.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store._among import among, portions
from opmon.store.schema import attachments, tasks
from opmon.types import Json

ERASED = "erased"
"""What stands in the place of a payload that was pruned, with when that was."""
LEAST = 200
"""Bytes fewer than these stay where they are."""
_LONGEST_FIELD = 300
_PLAIN = frozenset({float, int, bool, str, type(None)})
"""The types of values that neither are bytes nor hold any: rows of thousands of numbers are of these."""
_TYPES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)


def media_type(content: bytes) -> str:
    """What kind of file bytes are, by how they begin.

    >>> media_type(b"GIF89a"), media_type(b"?")
    ('image/gif', 'application/octet-stream')
    """
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in _TYPES if content.startswith(begin)), "application/octet-stream")


def taken_out(payload: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, bytes]]:
    """The payload with references in the place of bytes, and the bytes by field.

    >>> small, files = taken_out({"picture": {"base64": base64.b64encode(b"GIF89a" * 100).decode()}, "age": 3})
    >>> small, len(files["picture"])
    ({'picture': {'attached': 'picture', 'type': 'image/gif', 'bytes': 600}, 'age': 3}, 600)
    """
    files: dict[str, bytes] = {}
    return {name: _taken_out(value, name, files) for name, value in payload.items()}, files


def _taken_out(value: Json, field: str, files: dict[str, bytes]) -> Json:
    if type(value) in _PLAIN:
        return value
    content = content_of(value)
    if content is not None:
        if len(content) < LEAST or len(field) > _LONGEST_FIELD or "\0" in field or field in files:
            return value
        files[field] = content
        return _reference(field, content)
    if isinstance(value, Mapping):
        return {key: _taken_out(inner, f"{field}.{key}", files) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_taken_out(inner, f"{field}[{place}]", files) for place, inner in enumerate(value)]
    return value


def content_of(value: Json) -> bytes | None:
    """The bytes that a value of a payload stands for; None where it stands for none."""
    if not isinstance(value, Mapping) or set(value) != {"base64"} or not isinstance(value["base64"], str):
        return None
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (binascii.Error, ValueError):
        return None


def field_of(value: Json) -> str | None:
    """The field of the bytes that a value of a payload refers to; None where it is no reference."""
    if (
        isinstance(value, Mapping)
        and set(value) == {"attached", "type", "bytes"}
        and isinstance(value["attached"], str)
    ):
        return value["attached"]
    return None


def _reference(field: str, content: bytes) -> dict[str, Json]:
    return {"attached": field, "type": media_type(content), "bytes": len(content)}


def keep(connection: Connection, round_id: int, files: Mapping[int, Mapping[str, bytes]]) -> None:
    """Keep the bytes of a round's tasks, by their positions."""
    with_files = {position: own for position, own in files.items() if own}
    for some in portions(sorted(with_files), 100):
        query = sa.select(tasks.c.id, tasks.c.position).where(
            tasks.c.round_id == round_id, among(connection, tasks.c.position, some)
        )
        rows = [
            {"task_id": task_id, "field": field, "content": content}
            for task_id, position in connection.execute(query)
            for field, content in with_files[position].items()
        ]
        connection.execute(attachments.insert(), rows)


def seen(payload: Mapping[str, Json], erased_at: datetime | None) -> Mapping[str, Json]:
    """The payload as it is shown: of one that was pruned, when that was."""
    return payload if erased_at is None else {ERASED: erased_at.isoformat()}


def is_erased(payload: Mapping[str, Json]) -> bool:
    """Whether a payload was pruned."""
    return set(payload) == {ERASED}


def of_tasks(connection: Connection, task_ids: Iterable[int]) -> dict[tuple[int, str], bytes]:
    """The bytes that are kept of these tasks, by task and field."""
    found: dict[tuple[int, str], bytes] = {}
    for some in portions(sorted(set(task_ids)), 500):
        query = sa.select(attachments).where(among(connection, attachments.c.task_id, some))
        found |= {(row.task_id, row.field): row.content for row in connection.execute(query)}
    return found


def one(connection: Connection, task_id: int, field: str) -> bytes | None:
    """The bytes of one field of a task; None where none are kept."""
    query = sa.select(attachments.c.content).where(attachments.c.task_id == task_id, attachments.c.field == field)
    return connection.scalar(query)


def restored(payload: Mapping[str, Json], task_id: int, files: Mapping[tuple[int, str], bytes]) -> dict[str, Json]:
    """The payload with its bytes in it again."""
    return {name: _restored(value, task_id, files) for name, value in payload.items()}


def _restored(value: Json, task_id: int, files: Mapping[tuple[int, str], bytes]) -> Json:
    if type(value) in _PLAIN:
        return value
    field = field_of(value)
    if field is not None:
        content = files.get((task_id, field))
        return value if content is None else {"base64": base64.b64encode(content).decode()}
    if isinstance(value, Mapping):
        return {key: _restored(inner, task_id, files) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_restored(inner, task_id, files) for inner in value]
    return value


def size_of(value: Json) -> int:
    """The bytes that are kept beside a payload, or a part of one.

    >>> size_of({"photo": {"attached": "photo", "type": "image/png", "bytes": 900}, "age": 3})
    900
    """
    if type(value) in _PLAIN:
        return 0
    if field_of(value) is not None and isinstance(value, Mapping):
        return value["bytes"] if isinstance(value["bytes"], int) else 0
    if isinstance(value, Mapping):
        return sum(size_of(inner) for inner in value.values())
    return sum(size_of(inner) for inner in value) if isinstance(value, list | tuple) else 0


def has_references(payload: Mapping[str, Json]) -> bool:
    """Whether some of the payload's bytes are kept beside it."""
    return any(_refers(value) for value in payload.values())


def _refers(value: Json) -> bool:
    if type(value) in _PLAIN:
        return False
    if field_of(value) is not None:
        return True
    inner: Sequence[Json] = ()
    if isinstance(value, Mapping):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = value
    return any(_refers(each) for each in inner)

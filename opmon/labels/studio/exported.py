"""The rows of a file of Label Studio's: what it exports as JSON, or its tasks with annotations in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO

from opmon.errors import InputError
from opmon.labels.rows import RowError
from opmon.labels.studio.annotations import Annotation, annotations_of
from opmon.labels.studio.tasks import KEY, key_in
from opmon.types import Json

MAX_EXPORT = 512 * 1024 * 1024
"""The most bytes of one file, which is read as a whole."""
_NAMED = ("monitor", "round", "input_id")


def exported_rows(stream: IO[str] | IO[bytes], name: str) -> Iterator[tuple[int, dict[str, object] | RowError]]:
    """A row for each annotator's answer, with the place of its task; one without an answer for a task without any."""
    for place, task in enumerate(_tasks(stream, name), 1):
        if not isinstance(task, dict):
            yield place, RowError("is no task of Label Studio's")
            continue
        key = key_in(task)
        if key is None:
            yield place, RowError(f"names no task of opmon's: there is no {KEY!r} in its data or meta")
            continue
        about = _about(task, key)
        said: dict[int | str, Annotation] = {}
        for each in annotations_of(task):
            if isinstance(each, RowError):
                yield place, each
            else:
                said[each.by] = each  # the last word of each annotator
        yield from ((place, about | _answer(each)) for each in said.values())
        if not said:
            yield place, about


def annotator_name(by: int | str) -> str:
    """The name of an annotator of whom only a number is known.

    >>> annotator_name(7), annotator_name("ann@example.com")
    ('user-7', 'ann@example.com')
    """
    return f"user-{by}" if isinstance(by, int) else by


def _about(task: Mapping[str, Json], key: str) -> dict[str, object]:
    meta = task.get("meta")
    told = meta.get(KEY) if isinstance(meta, dict) else None
    known = {each: told[each] for each in _NAMED if each in told} if isinstance(told, dict) else {}
    return {"task_key": key, **known}


def _answer(said: Annotation) -> dict[str, object]:
    row: dict[str, object] = {"annotator": annotator_name(said.by), "at": said.at.isoformat()}
    return row | ({"skip": True} if said.truth is None else {"label": said.truth})


def _tasks(stream: IO[str] | IO[bytes], name: str) -> list[Json]:
    content = stream.read(MAX_EXPORT + 1)
    if len(content) > MAX_EXPORT:
        raise InputError(f"{name} is larger than {MAX_EXPORT:,} bytes; export it in parts")
    try:
        found = json.loads(content)
    except RecursionError:
        raise InputError(f"{name} is nested too deeply") from None
    except ValueError as exc:
        raise InputError(f"{name} is no JSON: {exc}") from exc
    if not isinstance(found, list):
        raise InputError(f"{name} is not Label Studio's: it must hold a list of tasks, as its export 'JSON' does")
    return found

"""What Label Studio's annotators said, from its annotations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from opmon.labels.rows import RowError, as_truth, moment_in
from opmon.labels.studio.configuration import ANSWERS, NONE
from opmon.types import Json


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's answer; ``truth`` is None for a skip."""

    by: int | str
    """The annotator: the number of a user, or the name where it is told."""
    truth: str | None
    at: datetime
    seconds: float | None = None


def annotations_of(task: Mapping[str, Json]) -> Iterator[Annotation | RowError]:
    """The answers to a task, in the order in which they were last changed; errors for those that cannot be read."""
    found = task.get("annotations")
    read = [_read(each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    yield from (each for each in read if isinstance(each, RowError))
    yield from sorted((each for each in read if isinstance(each, Annotation)), key=lambda each: each.at)


def _read(annotation: Mapping[str, Json]) -> Annotation | RowError | None:
    """The answer; None where nothing was answered, and it was not skipped either."""
    try:
        skipped = annotation.get("was_cancelled") is True
        truth = None if skipped else _truth(annotation.get("result"))
        if truth is None and not skipped:
            return None
        by = _by(annotation.get("completed_by"))
        at = _moment(annotation.get("updated_at") or annotation.get("created_at"))
        took = annotation.get("lead_time")
        seconds = float(took) if isinstance(took, int | float) and not isinstance(took, bool) and took >= 0 else None
        return Annotation(by, truth, at, seconds)
    except RowError as exc:
        return exc


def _truth(result: Json) -> str | None:
    """The class, the list of classes, the number or the stars that were answered."""
    answered: list[Json] = []
    for part in result if isinstance(result, list) else []:
        value = part.get("value") if isinstance(part, dict) else None
        if isinstance(value, dict):
            chosen = _chosen(value)
            several = isinstance(part, dict) and part.get("from_name") == ANSWERS
            answered += [json.dumps([name for name in chosen if name != NONE])] if several and chosen else chosen
            answered += [value[kind] for kind in ("number", "rating") if value.get(kind) is not None]
    if len(answered) > 1:
        raise RowError(f"holds {len(answered)} answers, and one is asked for: {', '.join(map(str, answered[:3]))}")
    return as_truth(answered[0]) if answered else None


def _chosen(value: Mapping[str, Json]) -> list[Json]:
    """The classes that were chosen."""
    choices, paths = value.get("choices"), value.get("taxonomy")
    leaves = [path[-1] for path in paths if isinstance(path, list) and path] if isinstance(paths, list) else []
    return [*(choices if isinstance(choices, list) else []), *leaves]


def _by(value: Json) -> int | str:
    """Who it was: the number of the user, or the e-mail address where the export has it."""
    if isinstance(value, dict):
        name = value.get("email") or value.get("username")
        value = name if isinstance(name, str) and name else value.get("id")
    if isinstance(value, bool) or not isinstance(value, int | str) or not value:
        raise RowError("does not say who answered")
    return value


def _moment(value: Json) -> datetime:
    at = moment_in(value) if isinstance(value, str) else None
    if at is None:
        raise RowError(f"has no time of its answer; got {str(value)[:40]!r}")
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)

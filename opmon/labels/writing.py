"""Tasks as label files are written.

A task is ``task_key, task_id, monitor, round, input_id``, an empty ``label``, ``due_at``, and what the annotator is to
see: under ``payload`` in JSONL, in columns ``input.<name>`` in CSV. What is told of all tasks (``classes``, ``unit``,
``guidelines``) stands in the first row of each monitor, and again where it changes; in CSV in columns, which every
spreadsheet keeps. On the way back all this means nothing.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from opmon.labels.rows import as_json, cell, guarded
from opmon.labels.studio.configuration import labelling_configuration
from opmon.labels.studio.tasks import Layout, layout_of, plain_payload, task_form
from opmon.problems import traits
from opmon.scales import ALLOWED
from opmon.types import Guide, Json, Task

_TASK_COLUMNS = ("task_key", "task_id", "monitor", "round", "input_id")
_ANSWER_COLUMNS = ("label", "skip", "annotator")
_TOLD_COLUMNS = ("due_at", "asks_for", "classes", "unit", "guidelines")


def write_jsonl(tasks: Iterable[Task], stream: IO[str], guides: Mapping[str, Guide]) -> int:
    """One JSON object a line; gives the number of tasks, as all of these do."""
    number, told = 0, _Told(guides)
    for task in tasks:
        out = {"task_key": task.key, "task_id": task.id, "monitor": task.monitor, "round": task.round,
               "input_id": task.input_id, "label": None, **told.of(task), "payload": as_json(task.payload)}  # fmt: skip
        stream.write(json.dumps(out, ensure_ascii=False, allow_nan=False) + "\n")
        number += 1
    return number


def write_csv(tasks: Iterable[Task], stream: IO[str], guides: Mapping[str, Guide]) -> int:
    """A table for spreadsheets."""
    tasks, told = list(tasks), _Told(guides)
    about = [told.of(task) for task in tasks]
    named = [name for name in _TOLD_COLUMNS if any(name in each for each in about)]
    names = list(dict.fromkeys(name for task in tasks for name in task.payload))
    stream.write("\ufeff")  # a spreadsheet takes the file for UTF-8 by this mark alone
    table = csv.writer(stream, lineterminator="\r\n")
    table.writerow([*_TASK_COLUMNS, *_ANSWER_COLUMNS, *named, *(f"input.{name}" for name in names)])
    for task, said in zip(tasks, about, strict=True):
        known = [task.key, task.id, guarded(task.monitor), task.round, guarded(task.input_id)]
        answers = ["" for _ in _ANSWER_COLUMNS]
        shown = [cell(_in_words(said.get(name))) for name in named]
        table.writerow([*known, *answers, *shown, *(cell(task.payload.get(name)) for name in names)])
    return len(tasks)


def write_studio(tasks: Iterable[Task], stream: IO[str], guides: Mapping[str, Guide]) -> int:
    """The tasks as Label Studio imports them."""
    tasks, told = list(tasks), _Told(guides)
    layouts = _layouts(tasks, guides)
    stream.write("[")
    for number, task in enumerate(tasks):
        form = task_form(task, plain_payload(task), layouts[task.monitor], told.of(task))
        stream.write((",\n" if number else "\n") + json.dumps(form, ensure_ascii=False, allow_nan=False))
    stream.write("\n]\n")
    return len(tasks)


def studio_configuration(tasks: Sequence[Task], guides: Mapping[str, Guide]) -> str | None:
    """The labelling configuration of the Label Studio project that takes these tasks; None if they need several."""
    layouts = _layouts(tasks, guides)
    if len(layouts) != 1:
        return None
    ((monitor, layout),) = layouts.items()
    guide, names = guides.get(monitor, Guide()), dict.fromkeys(name for task in tasks for name in task.classes)
    return labelling_configuration(layout.shown, guide, guide.said_of(tuple(names)))


def _layouts(tasks: Iterable[Task], guides: Mapping[str, Guide]) -> dict[str, Layout]:
    by_monitor: dict[str, list[Mapping[str, Json]]] = {}
    for task in tasks:
        by_monitor.setdefault(task.monitor, []).append(plain_payload(task))
    return {name: layout_of(payloads, guides.get(name, Guide())) for name, payloads in by_monitor.items()}


class _Told:
    """What each row says of its task beside the task: when it is due, and what is new of what holds for all."""

    def __init__(self, guides: Mapping[str, Guide]) -> None:
        self._guides = guides
        self._before: dict[tuple[str, str], Json] = {}

    def of(self, task: Task) -> dict[str, Json]:
        guide = self._guides.get(task.monitor, Guide(classes=dict.fromkeys(task.classes, "")))
        classes: Json = dict(guide.said_of(task.classes)) if traits(guide.problem).of_classes else {}
        told: dict[str, Json] = {"due_at": None if task.due_at is None else task.due_at.isoformat()}
        asks = {"asks_for": _asks_for(guide), "classes": classes, "unit": guide.unit, "guidelines": guide.guidelines}
        for name, value in asks.items():
            if self._before.get((task.monitor, name)) != value:
                self._before[task.monitor, name] = value
                told[name] = value
        return {name: value for name, value in told.items() if value}


def _asks_for(guide: Guide) -> str | None:
    """What a label is to say, where that is not plain from the classes or the unit."""
    if guide.problem == "multilabel":
        return "the classes that hold, with ; between them; none where none does"
    return None if traits(guide.problem).compares else ALLOWED[guide.scale or "pass_fail"]


def _in_words(value: Json) -> Json:
    """What a cell says; of classes, all of them with their descriptions.

    >>> _in_words({"cat": "of any age", "dog": ""})
    'cat (of any age); dog'
    """
    if not isinstance(value, dict):
        return value
    return "; ".join(f"{name} ({about})" if about else name for name, about in value.items())

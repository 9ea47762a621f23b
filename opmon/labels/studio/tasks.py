"""A task as Label Studio takes it: ``{"data": {…}, "meta": {…}}``.

``data`` has the same keys in every task of every monitor, whatever the payload calls its fields, so that a labelling
configuration fits all tasks of a project. ``opmon`` among them is the task's key, by which it is found again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opmon.labels.rows import as_json
from opmon.labels.studio.pictures import address_of, is_picture
from opmon.types import Guide, Json, Task
from opmon.values import as_browsers_read

KEY = "opmon"
"""Under this name ``data`` holds the task's key, and ``meta`` all that is known of it."""
_MOST_PICTURES = 4
_LONG = 60
_LONGEST_CELL = 2_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Which fields of the payloads are shown as what; the others are the row."""

    pictures: tuple[str, ...] = ()
    text: str | None = None
    row: bool = False
    output: str | None = None
    """The model's output, where it is judged and is no picture."""

    @property
    def shown(self) -> frozenset[str]:
        """The keys of ``data`` that annotators are to see. Beside a picture the row is lines of text: a project takes
        files of pictures only while a picture is all that it names."""
        keys = {picture_key(place) for place in range(len(self.pictures))}
        if self.text is not None:
            keys.add("text")
        if self.output is not None:
            keys.add("output")
        if self.row or not keys:
            keys.add("lines" if self.pictures else "row")
        return frozenset(keys)


def picture_key(place: int) -> str:
    """What the picture at this place is called in ``data``."""
    return "picture" if place == 0 else f"picture_{place + 1}"


def layout_of(payloads: Sequence[Mapping[str, Json]], guide: Guide) -> Layout:
    """What the payloads hold: pictures, a text to read, a row; as the monitor names them, else as they look.

    >>> layout_of([{"photo": "https://example.com/1.png", "age": 3}], Guide()).shown == {"picture", "lines"}
    True
    >>> layout_of([{"review": "It came late, and in two pieces; the box was wet."}], Guide(text="review")).shown
    frozenset({'text'})
    """
    names = list(dict.fromkeys(name for payload in payloads for name in payload))
    values = {name: [payload[name] for payload in payloads if payload.get(name) is not None] for name in names}
    named = guide.picture if guide.picture in values else None
    pictures = [name for name in names if name == named or (values[name] and all(map(is_picture, values[name])))]
    pictures = sorted(pictures, key=lambda name: name != named)[:_MOST_PICTURES]
    if named is not None and not all(is_picture(value, named=True) for value in values[named]):
        pictures.remove(named)  # a path that no browser opens is a word in the row
    output = guide.output if guide.output in names and guide.output not in pictures else None
    left = [name for name in names if name not in (*pictures, output)]
    texts = [name for name in left if any(isinstance(value, str) and len(value) > _LONG for value in values[name])]
    text = guide.text if guide.text in left else (texts[0] if len(texts) == 1 else None)
    return Layout(tuple(pictures), text, any(name != text for name in left), output)


def task_form(
    task: Task, payload: Mapping[str, Json], layout: Layout, told: Mapping[str, Json] | None = None
) -> dict[str, Json]:
    """The task as Label Studio imports it; ``told`` is what else is known of it."""
    data: dict[str, Json] = {KEY: task.key}
    for place, name in enumerate(layout.pictures):
        data[picture_key(place)] = address_of(payload.get(name))
    data.setdefault(picture_key(0), "")
    text = None if layout.text is None else payload.get(layout.text)
    data["text"] = "" if text is None else str(text)
    if layout.output is not None:
        output = payload.get(layout.output)
        data["output"] = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
    shown = (*layout.pictures, layout.text, layout.output)
    rest = {name: _cell(as_browsers_read(value)) for name, value in payload.items() if name not in shown}
    lines = "lines" in layout.shown
    data["lines"] = "\n".join(f"{name}: {value}" for name, value in rest.items()) if lines else ""
    data["row"] = {} if lines else dict(rest)
    named: dict[str, Json] = {"key": task.key, "monitor": task.monitor, "round": task.round, "input_id": task.input_id}
    return {"data": data, "meta": {KEY: named | dict(told or {})}, "allow_skip": True}


def plain_payload(task: Task) -> dict[str, Json]:
    """The task's payload as JSON has it."""
    return {name: as_json(value) for name, value in task.payload.items()}


def key_in(form: Mapping[str, Json]) -> str | None:
    """The key of a task that Label Studio gives back; None for one that opmon did not make."""
    for part, inner in (("meta", "key"), ("data", None)):
        found = form.get(part)
        held = found.get(KEY) if isinstance(found, dict) else None
        key = held.get(inner) if inner is not None and isinstance(held, dict) else held
        if isinstance(key, str) and key:
            return key
    return None


def _cell(value: Json) -> str | int | float | bool:
    """A value as it is read in a row."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}…"

"""A few inputs as annotators will see them, where what they see or say is more than an input and a class."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from opmon.checks.finding import Finding
from opmon.checks.labels import hidden
from opmon.config import MonitorSettings
from opmon.problems import traits
from opmon.scales import ALLOWED
from opmon.stages.payloads import payload_of
from opmon.types import Json

_INPUTS, _FIELDS, _WIDTH = 5, 5, 44


def shown_to_annotators(monitor: MonitorSettings, rows: pa.Table) -> Finding | None:
    """The first inputs with the fields of their tasks, an output that is judged last; None where a class or a number
    is asked for, or there is no input."""
    if traits(monitor.problem).one_class or traits(monitor.problem).of_numbers or not rows.num_rows:
        return None
    listed = rows.slice(0, _INPUTS).to_pylist()
    seen = [payload_of(row, monitor.columns, hidden(monitor), monitor.judged_column) for row in listed]
    output = monitor.judged_column
    names = [name for name in seen[0] if name != output][: _FIELDS - 1] + ([output] if output else [])
    headings = tuple(f"{name} (judged)" if name == output else name for name in names)
    more = len(seen[0]) - len(names)
    left = f"; {more} more fields of each are not in this table" if more else ""
    asked = "the classes that hold, or none" if output is None else ALLOWED[monitor.scale or "pass_fail"]
    return Finding(
        f"{monitor.name}: annotators",
        "ok",
        f"annotators see these, and say {asked}{left}",
        rows=(headings, *_cells(seen, names)),
    )


def _cells(seen: Sequence[Mapping[str, Json]], names: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(_cell(payload.get(name)) for name in names) for payload in seen]


def _cell(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDTH else f"{flat[: _WIDTH - 1]}…"

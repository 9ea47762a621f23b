"""The labels of a round as a dataset: every task, what was said of it and by whom; and as a file to import again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from opmon.adjudication import TRUTH, Asked
from opmon.types import Json, Label


def write_labels(tasks: Sequence[Asked], path: Path) -> Path:
    """Writes a Parquet file with one row per task: id, position in the frame, prediction, truth, annotators, state."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "task": pa.array([task.task_id for task in tasks], pa.int64()),
            "position": pa.array([task.position for task in tasks], pa.int64()),
            "input_id": pa.array([task.input_id for task in tasks], pa.string()),
            "prediction": pa.array([task.prediction for task in tasks], pa.string()),
            "truth": pa.array([task.truth for task in tasks], pa.string()),
            "state": pa.array([_state(task) for task in tasks], pa.string()),
            "agreement": pa.array([task.agreement for task in tasks], pa.float64()),
            "annotators": pa.array([list(task.annotators) for task in tasks], pa.list_(pa.string())),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def write_said(monitor: str, tasks: Sequence[Asked], path: Path) -> Path:
    """Writes what each annotator said last, one JSON object a line, as ``opmon labels import`` takes it.

    Inputs are named by their own ids, for a database that lost their tasks asks about them in tasks of its own. Truth
    that arrived by itself is not among it: it is read again.
    """
    with path.open("w", encoding="utf-8") as stream:
        for task in tasks:
            stream.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in _said(monitor, task))
    return path


def _said(monitor: str, task: Asked) -> Iterator[dict[str, Json]]:
    last: dict[str, Label] = {label.annotator: label for label in task.labels if label.annotator != TRUTH}
    for name, label in last.items():
        answer: dict[str, Json] = {"skip": True} if label.truth is None else {"label": label.truth}
        yield {"monitor": monitor, "input_id": task.input_id, **answer, "annotator": name, "at": label.at.isoformat()}


def _state(task: Asked) -> str:
    if not task.is_spoken_of:
        return "open"
    return "skipped" if task.truth is None else "answered"

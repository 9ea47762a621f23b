"""The labels of a round as a dataset: every task, what was said of it and by whom."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opmon.adjudication import Asked


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


def _state(task: Asked) -> str:
    if not task.is_spoken_of:
        return "open"
    return "skipped" if task.truth is None else "answered"

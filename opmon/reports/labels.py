"""The labels of a round as a dataset: every task, what was said of it and by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class _Answer(Protocol):
    @property
    def truth(self) -> str | None: ...
    @property
    def annotators(self) -> tuple[str, ...]: ...
    @property
    def agreement(self) -> float: ...


class _Asked(Protocol):
    @property
    def task_id(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def input_id(self) -> str: ...
    @property
    def prediction(self) -> str: ...
    @property
    def variables(self) -> Mapping[str, float]: ...
    @property
    def answer(self) -> _Answer | None: ...


def write_labels(tasks: Sequence[_Asked], path: Path) -> Path:
    """Writes a Parquet file with one row per task: id, position in the frame, prediction, truth, annotators, state."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    answers = [task.answer for task in tasks]
    table = pa.table(
        {
            "task": pa.array([task.task_id for task in tasks], pa.int64()),
            "position": pa.array([task.position for task in tasks], pa.int64()),
            "input_id": pa.array([task.input_id for task in tasks], pa.string()),
            "prediction": pa.array([task.prediction for task in tasks], pa.string()),
            "truth": pa.array([answer.truth if answer else None for answer in answers], pa.string()),
            "state": pa.array([_state(answer) for answer in answers], pa.string()),
            "agreement": pa.array([answer.agreement if answer else None for answer in answers], pa.float64()),
            "annotators": pa.array(
                [list(answer.annotators) if answer else [] for answer in answers], pa.list_(pa.string())
            ),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def _state(answer: _Answer | None) -> str:
    if answer is None:
        return "open"
    return "skipped" if answer.truth is None else "answered"

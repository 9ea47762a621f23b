"""The retraining after the alarm, as a user would do it: on labels of production, fetched from MLflow.

Nothing but the artifacts of the monitor's rounds and the production log is used; the truth that the demo knows is not.
Slips of the annotators that nobody noticed are trained on too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opmon.abc import Registry
from opmon.demo.digits import SIDE, Digits


@dataclass(frozen=True, eq=False)
class Lesson:
    """Inputs of production with their labels: all that were labelled, and of these the exposed failures again."""

    labelled: Digits
    failures: Digits

    @property
    def digits(self) -> Digits:
        return self.labelled.joined(self.failures)


def learn(registry: Registry, run_ids: Sequence[str], production: Path, into: Path) -> Lesson:
    """The lesson of these rounds, from ``labels.parquet`` and ``failures/failures.parquet`` of their runs."""
    logged = pq.read_table(production, columns=["input_id", "pixels"])
    labels, failures = [], []
    for run_id in run_ids:
        folder = into / run_id
        said = pq.read_table(registry.download(run_id, "labels.parquet", folder))
        labels.append(said.filter(pc.equal(said["state"], "answered")).select(["input_id", "truth"]))
        failures.append(pq.read_table(registry.download(run_id, "failures/failures.parquet", folder)))
    answers = pa.concat_tables(labels)
    rows = pc.index_in(answers["input_id"], logged["input_id"])
    exposed = pa.concat_tables([table.select(["truth", "pixels"]) for table in failures if table.num_rows])
    return Lesson(_digits(answers["truth"], logged["pixels"].take(rows)), _digits(exposed["truth"], exposed["pixels"]))


def _digits(truth: pa.ChunkedArray, pixels: pa.ChunkedArray) -> Digits:
    pictures = np.array(pixels.to_pylist(), dtype=np.float32).reshape(-1, SIDE, SIDE)
    return Digits(pictures, np.array(truth.to_pylist(), dtype=np.int64))

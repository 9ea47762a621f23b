"""What production logs: one Parquet file per window of an hour, with what the model answered; and the truth."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.demo.digits import Digits, Pictures, drifted, handled, mix

Predict = Callable[[Pictures], NDArray[np.int64]]
"""From rows of 64 pixels to digits."""


@dataclass(frozen=True, eq=False)
class Window:
    """One hour of production. Nobody but the demo knows ``digits.truth``."""

    number: int
    drift: float
    model_version: str
    ids: tuple[str, ...]
    digits: Digits
    predictions: NDArray[np.int64]

    @property
    def true_accuracy(self) -> float:
        """The share of this window's inputs that the serving model got right: what opmon is to estimate."""
        return float((self.predictions == self.digits.truth).mean())

    @property
    def truth(self) -> dict[str, int]:
        return dict(zip(self.ids, self.digits.truth.tolist(), strict=True))


def window(
    number: int, *, pool: Digits, size: int, drift: float, predict: Predict, model_version: str, seed: int
) -> Window:
    """The inputs of one hour, drawn from ``pool``, and what the model answers."""
    rng = np.random.default_rng([seed, 3, number])
    chosen = pool.take(rng.choice(len(pool), size, p=mix(pool.truth, drift)))
    digits = Digits(handled(chosen.pictures, drifted(drift), rng), chosen.truth)
    ids = tuple(f"{number:02d}-{row:05d}" for row in range(size))
    return Window(number, drift, model_version, ids, digits, predict(digits.rows))


def write(window: Window, folder: Path, starts_at: datetime) -> Path:
    """Log a window as production would; the file appears whole, under its name, or not at all."""
    count = len(window.ids)
    step = timedelta(hours=1) / count
    table = pa.table(
        {
            "input_id": pa.array(window.ids, pa.string()),
            "at": pa.array([starts_at + row * step for row in range(count)], pa.timestamp("us", tz="UTC")),
            "pixels": pa.FixedSizeListArray.from_arrays(pa.array(window.digits.rows.ravel()), 64),
            "prediction": pa.array(window.predictions.astype(str).tolist(), pa.string()),
            "model_version": pa.array([window.model_version] * count, pa.string()),
        }
    )
    path = folder / f"window-{window.number:02d}.parquet"
    partial = path.with_suffix(".tmp")
    pq.write_table(table, partial)
    os.replace(partial, path)  # noqa: PTH105 - said as what it is: an atomic rename
    return path

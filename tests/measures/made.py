"""Draws with truths, predictions and scores, for tests of measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opmon import plugins
from opmon.abc import Measure
from opmon.estimators.measured import measured
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.types import Draw, Estimate, Labelled, Sample

SRS = SimpleRandomEstimator()


def measure(name: str, /, **parameters: object) -> Measure:
    """The built-in measure; ``class_`` is written ``class``."""
    return plugins.make("measure", name, {plugins.written(key): value for key, value in parameters.items()})


def classified(
    truth: Sequence[str], predicted: Sequence[str], scores: Sequence[Sequence[float]] | None = None
) -> Labelled:
    """Answered draws of a classifier."""
    classes = tuple(sorted({*truth, *predicted}))
    numbers = None if scores is None else np.array(scores, dtype=np.float64)
    return Labelled(np.ones(len(truth), dtype=bool), np.array(truth), np.array(predicted), numbers, classes)


def predicted(truth: Sequence[float], predicted: Sequence[float]) -> Labelled:
    """Answered draws of a regression."""
    return Labelled(np.ones(len(truth), dtype=bool), np.array(truth, dtype=float), np.array(predicted, dtype=float))


def drawn(rows: Labelled, size: int = 1000, replacement: bool = True) -> Sample:
    """The rows as a simple random sample of ``size`` inputs."""
    draw = Draw("srs", size, np.arange(len(rows)), constants={"replacement": np.array(replacement)})
    return Sample(draw, np.where(rows.answered, 0.0, np.nan))


def estimate(rows: Labelled, of: Measure, unit: str | None = None, size: int = 1000) -> Estimate:
    """The estimate of a measure from the rows as a simple random sample."""
    return measured(SRS, drawn(rows, size), rows, of, unit)

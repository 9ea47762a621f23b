"""The pictures of a round's measures, from what is known of its draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opmon.errors import InputError
from opmon.estimators._linear import LinearEstimator
from opmon.estimators.reliability import reliability
from opmon.measures.calibration_error import CalibrationError
from opmon.reports.measure_figures import MeasureFigure, Reliability, confusion_figure, reliability_figure
from opmon.stages.measures import rows_of
from opmon.stages.weights import linear
from opmon.store.rounds import Round
from opmon.types import Floats, Sample
from opmon.types.labelled import Labelled

if TYPE_CHECKING:
    from opmon.stages.estimate import Answers

MOST_CLASSES = 60
CONFUSION, CALIBRATION = "confusion_matrix", "calibration_error"
"""The measures that have a picture."""


def measure_figures(round_: Round, answers: Answers) -> list[MeasureFigure]:
    """The pictures of the measures of the round's plan; nothing where its design does not tell what draws stand for."""
    wanted = {str(stored["type"]) for stored in round_.plan.measures or ()}
    estimator = linear(answers.sample)
    if estimator is None or round_.plan.problem != "classification" or not wanted & {CONFUSION, CALIBRATION}:
        return []
    rows = rows_of(round_, answers.tasks, answers.sample.draw)
    weights = np.maximum(np.asarray(estimator.coefficients(answers.sample)), 0.0)
    found = []
    if CONFUSION in wanted and 2 <= len(rows.classes) <= MOST_CLASSES:
        found.append(confusion_figure(_matrix(rows, weights), rows.classes))
    if CALIBRATION in wanted:
        bins = _bins(estimator, answers.sample, rows, _bins_asked(round_), round_.plan.level)
        if bins is not None:
            found.append(reliability_figure(bins, "the probability of its answer"))
    return found


def _matrix(rows: Labelled, weights: Floats) -> Floats:
    """The estimated share of all inputs by truth and answer; answers that are none of the classes are left out."""
    place = {name: at for at, name in enumerate(rows.classes)}
    matrix = np.zeros((len(place), len(place)))
    for truth, said, weight in zip(rows.truth, rows.predicted, weights, strict=True):
        if weight > 0 and truth in place and said in place:
            matrix[place[truth], place[said]] += weight
    return matrix / max(float(matrix.sum()), 1e-300)


def _bins_asked(round_: Round) -> int:
    """The bins of the plan's calibration error."""
    stored = (each for each in round_.plan.measures or () if each["type"] == CALIBRATION)
    return int(str(next(stored, {}).get("bins", CalibrationError.bins)))


def _bins(estimator: LinearEstimator, sample: Sample, rows: Labelled, bins: int, level: float) -> Reliability | None:
    """The bins of confidence that the calibration error is made of, with the design's own intervals."""
    try:
        table = reliability(estimator, sample, rows, bins, level)
    except InputError:  # no scores are known: the measure itself says so
        return None
    numbers = [(one.confidence, one.accuracy, one.low, one.high, one.share) for one in table]
    return Reliability(*np.array(numbers).T)

"""The pictures of a round's measures, from what is known of its draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opmon.estimators.intervals import wilson
from opmon.reports.measure_figures import MeasureFigure, Reliability, confusion_figure, reliability_figure
from opmon.stages.measures import rows_of
from opmon.stages.weights import linear
from opmon.store.rounds import Round
from opmon.types import Floats
from opmon.types.labelled import Labelled

if TYPE_CHECKING:
    from opmon.stages.estimate import Answers

GROUPS = 10
"""Groups of about as many answers in the picture of scores; fewer where there are few answers."""
FEWEST = 15
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
        groups = _groups(rows, weights, round_.plan.level)
        what = f"the probability of {rows.classes[1]}" if len(rows.classes) == 2 else "the probability of its answer"
        if groups is not None:
            found.append(reliability_figure(groups, what))
    return found


def _matrix(rows: Labelled, weights: Floats) -> Floats:
    """The estimated share of all inputs by truth and answer; answers that are none of the classes are left out."""
    place = {name: at for at, name in enumerate(rows.classes)}
    matrix = np.zeros((len(place), len(place)))
    for truth, said, weight in zip(rows.truth, rows.predicted, weights, strict=True):
        if weight > 0 and truth in place and said in place:
            matrix[place[truth], place[said]] += weight
    return matrix / max(float(matrix.sum()), 1e-300)


def _groups(rows: Labelled, weights: Floats, level: float) -> Reliability | None:
    """Answers in groups of like scores, each with the share of them that is so, and its interval: that is the second of
    two classes, of more classes what the model answers."""
    usable = rows.answered & rows.scored & (weights > 0)
    if rows.scores is None or not usable.any():
        return None
    place = {name: at for at, name in enumerate(rows.classes)}
    meant = np.full(len(rows), rows.classes[1]) if len(rows.classes) == 2 else rows.predicted
    columns = np.array([place.get(name, -1) for name in meant])
    usable &= columns >= 0
    if not usable.any():
        return None
    score = rows.scores[np.flatnonzero(usable), columns[usable]].astype(np.float64)
    right, weight = (rows.truth == meant)[usable].astype(np.float64), weights[usable] / weights[usable].sum()
    order = np.argsort(score, kind="stable")
    parts = np.array_split(order, max(1, min(GROUPS, len(order) // FEWEST)))
    mean, share, low, high, total = [], [], [], [], []
    for part in parts:
        own = weight[part] / weight[part].sum()
        rate = float(own @ right[part])
        found = wilson(rate, float(1 / (own @ own)), level)
        mean.append(float(own @ score[part]))
        share.append(rate)
        low.append(min(float(found.low), rate))
        high.append(max(float(found.high), rate))
        total.append(float(weight[part].sum()))
    return Reliability(*(np.array(values) for values in (mean, share, low, high, total)))

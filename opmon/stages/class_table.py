"""How a classifier does class by class: precision and recall with intervals, and which classes it takes for which."""

from __future__ import annotations

import numpy as np

from opmon import plugins
from opmon.errors import InputError
from opmon.estimators._linear import LinearEstimator
from opmon.estimators.measured import measured
from opmon.reports.classes import ClassRow, ClassTable
from opmon.stages.estimate import Answers
from opmon.stages.measures import rows_of
from opmon.stages.weights import linear
from opmon.store.rounds import Round
from opmon.types import Floats
from opmon.types.labelled import Labelled

MOST_CLASSES = 20
"""Of a model with more, those with the most failures are told."""

Interval = tuple[float, float, float]


def class_table(round_: Round, answers: Answers) -> ClassTable | None:
    """The table of a round's classes; None where its design does not tell what draws stand for, or has no classes."""
    estimator = linear(answers.sample) if answers.sample.answered.any() else None
    if estimator is None or round_.plan.problem != "classification" or not round_.classes:
        return None
    rows = rows_of(round_, answers.tasks, answers.sample.draw)
    shares = _shares(rows, np.maximum(estimator.coefficients(answers.sample), 0.0))
    names = list(rows.classes)
    wrong = shares.sum(axis=0) + shares.sum(axis=1) - 2 * np.diag(shares)
    shown = sorted(np.argsort(-wrong, kind="stable")[:MOST_CLASSES].tolist())
    told = [
        ClassRow(
            names[at],
            float(shares[at].sum()),
            _measure(estimator, answers, rows, "precision", names[at], round_.plan.level),
            _measure(estimator, answers, rows, "recall", names[at], round_.plan.level),
        )
        for at in shown
        if shares[at].any() or shares[:, at].any()
    ]
    kept = [at for at in shown if shares[at].any() or shares[:, at].any()]
    return ClassTable(tuple(told), shares[np.ix_(kept, kept)], len(names) - len(kept), round_.plan.level)


def _measure(
    estimator: LinearEstimator, answers: Answers, rows: Labelled, kind: str, name: str, level: float
) -> Interval | None:
    """A measure of one class; None where no answer tells of it."""
    try:
        found = measured(estimator, answers.sample, rows, plugins.make("measure", kind, {"class": name}), None, level)
    except InputError:
        return None
    return found.value, found.low, found.high


def _shares(rows: Labelled, weights: Floats) -> Floats:
    """The estimated share of all inputs by truth (rows) and answer (columns)."""
    place = {name: at for at, name in enumerate(rows.classes)}
    shares = np.zeros((len(place), len(place)))
    for truth, said, weight in zip(rows.truth, rows.predicted, weights, strict=True):
        if truth in place and said in place:
            shares[place[truth], place[said]] += weight
    return shares / max(float(shares.sum()), 1e-300)

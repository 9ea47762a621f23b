"""The propensity of each draw to be answered, from the auxiliary variables of all draws, answered or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from opmon._ridge import fit
from opmon.errors import InputError
from opmon.estimators._answers import answered
from opmon.types import Floats, Sample

FEWEST = 10
"""The fewest draws with an answer, and without one, from which a propensity is fitted."""
PRECISION = 2.0
"""The penalty of the ridge, per coefficient, with features of standard deviation 1."""
FOLDS = 10
SHRUNK = np.array([0.25, 0.5, 0.75, 1.0])
"""Shares of the fitted log odds that are tried."""
SKILL = 2.0
"""The log-likelihood of draws left out that a correction must win: less may be chance."""
CLASSES = 5
WORTH = 10.0
"""The weight of the fit, in draws, beside those of a class of like propensity."""
TAIL = 5.0


def weighed(sample: Sample, variables: Mapping[str, Floats]) -> Sample:
    """The sample with a propensity, where the ``variables`` (one value per draw) foretell who answers; else as it is.

    ``logit π`` is a ridge logistic regression of "answered" on rank and tail of every variable, with a level of its own
    for every wave. Its slopes are shrunk to the share that foretells best the draws left out in turn, and to nothing
    where that wins less than ``SKILL`` in log-likelihood: a correction that corrects nothing costs precision. What is
    fitted only sorts the draws into ``CLASSES`` classes, whose own shares of answers are the propensity
    (:func:`_observed`). The labels are not looked at.

    Every estimator then weighs the answers of a stratum by ``1/π``. That is right while answering has nothing to do
    with being wrong among draws alike in the variables; what else it has to do with cannot be corrected, and
    :func:`~opmon.estimators.worst_case.worst_case` says how far it can lead.
    """
    for name, values in variables.items():
        if len(values) != len(sample.draw):
            raise InputError(f"variable {name!r} needs one value per draw: {len(sample.draw)}; got {len(values)}")
    answers = answered(sample)
    heard, variables = int(answers.sum()), {name: v for name, v in variables.items() if _tells(v)}
    if min(heard, len(answers) - heard) < FEWEST or not variables:
        return sample
    level = _levels(sample)
    whole, many = np.hstack([level, _features(variables)]), level.shape[1]
    fold = np.unique(sample.draw.positions, return_index=True, return_inverse=True)
    held_out = fold[1][fold[2]] % FOLDS  # an input drawn twice is left out twice
    base, full = (_foretold(X, answers, many, held_out) for X in (level, whole))
    skill = [_likelihood(base + share * (full - base), answers) for share in SHRUNK]
    best = int(np.argmax(skill))
    if skill[best] - _likelihood(base, answers) < SKILL:
        return sample
    low, high = (X @ _slopes(X, answers, many) for X in (level, whole))
    return replace(sample, propensity=_observed(expit(low + SHRUNK[best] * (high - low)), answers))


def _observed(fitted: Floats, answers: NDArray[np.bool_]) -> Floats:
    """The share answered in each of ``CLASSES`` classes of like propensity, as if the fit were ``WORTH`` more draws.

    A regression runs on beyond what it has seen: where response falls at a step of a variable, its weights for the
    seldom answered were twice too large.
    """
    place = np.argsort(np.argsort(fitted, kind="stable")) * CLASSES // len(fitted)
    drawn = np.bincount(place, minlength=CLASSES)
    expected = np.bincount(place, weights=fitted, minlength=CLASSES) / np.maximum(drawn, 1)
    heard = np.bincount(place[answers], minlength=CLASSES)
    return np.asarray(((heard + WORTH * expected) / (drawn + WORTH))[place])


def _tells(values: Floats) -> bool:
    return bool(np.isfinite(values).all() and np.ptp(values) > 0)


def _features(variables: Mapping[str, Floats]) -> Floats:
    """Rank and tail of every variable among the draws, with standard deviation about 1."""
    columns = []
    for values in variables.values():
        rank = _middle_ranks(values)
        columns += [(rank - 0.5) * np.sqrt(12.0), np.minimum(-np.log1p(-rank), TAIL) - 1.0]
    return np.stack(columns, axis=1)


def _middle_ranks(values: Floats) -> Floats:
    """The share of the values below each, with half of those that are the same."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts / 2)[place] / len(values))


def _levels(sample: Sample) -> Floats:
    """One column per wave, 1 for its draws."""
    wave = sample.draw.columns.get("wave", np.zeros(len(sample.draw), dtype=np.int64))
    return np.asarray(wave[:, None] == np.unique(wave), dtype=np.float64)


def _foretold(X: Floats, answers: NDArray[np.bool_], levels: int, fold: NDArray[np.int64]) -> Floats:
    """The log odds of each draw from the draws of the other folds."""
    odds = np.empty(len(answers))
    for number in np.unique(fold):
        mine = fold == number
        odds[mine] = X[mine] @ _slopes(X[~mine], answers[~mine], levels)
    return odds


def _slopes(X: Floats, answers: NDArray[np.bool_], levels: int) -> Floats:
    return np.asarray(fit(X, answers.astype(np.float64), np.zeros(X.shape[1]), PRECISION, True, levels))


def _likelihood(odds: Floats, answers: NDArray[np.bool_]) -> float:
    return float(log_expit(np.where(answers, odds, -odds)).sum())

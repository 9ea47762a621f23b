"""What labels so far say of every input, along the auxiliary variables: how likely it fails, how far off, how good."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opmon._ridge import fit
from opmon.samplers import _proxy
from opmon.samplers._checks import chunks
from opmon.types import Floats, Frame, Numbers, Sample

LEVELS = 8
"""Of more different scores than this, so many stand for all."""
SPAN = 30.0
EXPECTED, PRECISION = 0.6, 4.0
"""How far learned errors are taken to hold of others, and how firmly."""


def likely_wrong(frame: Frame, sample: Sample, least: int) -> Numbers | None:
    """How likely the model is wrong on each input; None with fewer labels than ``least``."""
    variables = _proxy.coded(frame, tuple(frame.variables))
    if not variables or sample.answered.sum() < least:
        return None
    parts, _ = _proxy.learned(variables, replace(sample, problem="classification"))
    return np.asarray(_logistic(_along(variables, parts, frame.size)))


def expected_errors(frame: Frame, sample: Sample, least: int) -> Numbers | None:
    """How far off the prediction of each input is expected to be; None with fewer labels than ``least``."""
    variables = _proxy.coded(frame, tuple(frame.variables))
    if not variables or sample.answered.sum() < least or not np.nansum(sample.outcomes):
        return None
    sizes = Sample(sample.draw, np.sqrt(sample.outcomes), "regression", sample.propensity)
    parts, _ = _proxy.learned(variables, sizes)
    known = sample.answered
    error = _confirmed(variables, sizes) * _along(variables, parts, frame.size)
    error = np.exp(error - error.max())
    scale = float(np.sqrt(sample.outcomes[known]).mean()) / float(error[sample.draw.positions[known]].mean())
    return np.asarray(error * scale)


def _confirmed(variables: list[_proxy.Variable], sizes: Sample) -> float:
    """How far what labels say of errors holds of other labels, from 0, not at all, to 1.

    Each half of the labels foretells the logarithms of the errors of the other; what a unit of that makes of the errors
    themselves is drawn towards ``EXPECTED``.
    """
    known = sizes.answered
    y = np.minimum(sizes.outcomes[known] / sizes.outcomes[known].mean(), _proxy.LARGEST)
    X = _proxy.design_matrix(variables, sizes.draw.positions[known])
    prior = np.full(X.shape[1], _proxy.SLOPE / len(variables))
    half, foretold = np.arange(len(y)) % 2 == 0, np.zeros(len(y))
    for own in (half, ~half):
        if not y[own].any():
            return EXPECTED
        foretold[~own] = X[~own] @ fit(X[own], y[own], prior, float(len(variables)), binary=False)
    line = np.stack([np.ones(len(y)), foretold - foretold.mean()], axis=1)
    slope = fit(line, y, np.array([0.0, EXPECTED]), PRECISION, binary=False)[1]
    return float(np.clip(slope, 0.0, 1.0))


def likely_scores(frame: Frame, sample: Sample, least: int) -> dict[str, Numbers] | None:
    """By score, written as a number, how likely people are to give it to each output; None with fewer labels.

    What a score lacks of 1 is fitted along the variables by ridge logistic regression. Of all distributions with the
    mean that follows, that is taken which is nearest to the one of all scores so far.
    """
    variables = _proxy.coded(frame, tuple(frame.variables))
    known = sample.answered
    lacking = sample.outcomes[known]
    if not variables or known.sum() < least or not np.ptp(lacking) > 0:
        return None
    X = _proxy.design_matrix(variables, sample.draw.positions[known])
    prior = np.full(X.shape[1], _proxy.SLOPE / len(variables))
    beta = fit(X, lacking, prior, float(len(variables)), binary=True)
    mean = _logistic(_along(variables, _proxy.contributions(variables, beta), frame.size))
    levels, share = _levels(lacking)
    tilt = np.linspace(-SPAN, SPAN, 2001)
    weight = share * np.exp(np.clip(np.outer(tilt, levels - levels.mean()), -700, 700))
    weight /= weight.sum(axis=1, keepdims=True)
    at = np.interp(mean, weight @ levels, np.arange(len(tilt)))
    chances = [np.interp(at, np.arange(len(tilt)), column).astype(np.float32) for column in weight.T]
    return {repr(float(1 - level)): chance for level, chance in zip(levels, chances, strict=True)}


def _levels(values: Floats) -> tuple[Floats, Floats]:
    """The different values with how often each occurs; of many, some that stand for all."""
    different, counts = np.unique(values, return_counts=True)
    if len(different) <= LEVELS:
        return different, counts / counts.sum()
    groups = np.array_split(np.sort(values), LEVELS)
    return np.array([float(group.mean()) for group in groups]), np.array([len(group) for group in groups]) / len(values)


def _along(variables: list[_proxy.Variable], parts: list[Numbers], size: int) -> Floats:
    tables = [variable.table(part) for variable, part in zip(variables, parts, strict=True)]
    score = np.empty(size, np.float32)
    for part in chunks(size):
        score[part] = _proxy.scores(variables, tables, part)
    return score.astype(np.float64)


def _logistic(odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -SPAN, SPAN))))

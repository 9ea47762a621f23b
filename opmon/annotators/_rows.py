"""The likelihood of what was answered of each input, with its gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from opmon.annotators._layout import Layout
from opmon.annotators.opinions import Coded
from opmon.types import Floats

NEVER = -60.0
"""The logarithm of a probability that is taken for none."""
LEAST = 0.05
"""More different classes than ``M`` are as good as impossible; at 0 the likelihood would have no slope."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Per row the log-likelihood, its gradient, and the probability of each truth: that it is what the model said, the
    first, second, … other class that occurs, or, last, one that does not occur."""

    value: Floats
    slope: Floats
    truth: Floats


def rows(coded: Coded, layout: Layout, parameters: Floats) -> Rows:
    """The rows under these parameters.

    ``log Σ_t P(t) Π_a P(answer_a | t)``: of the ``M`` classes that are confused with it, each is as likely as the
    other. Classes have no names here: what counts is which answers are the same, and which is the model's. So the
    number of ways in which ``M`` classes can be those that occur, ``M (M − 1) … ``, is a factor.
    """
    M = layout.alternatives(parameters)
    odds = _odds(coded, layout, parameters)
    right, wrong = -np.logaddexp(0, odds), -np.logaddexp(0, -odds) - math.log(M)
    hit, miss = coded.hits
    log = _by_truth(hit, right) + _by_truth(miss, wrong)
    prior, of_m = _prior(coded, M, parameters, layout.groups)
    log = np.where(coded.excluded, 2 * NEVER, log + prior)
    value = _log_sum(log)
    truth = np.exp(log - value[:, None])
    e = expit(odds)
    pull = truth[:, :, None] * (_each_truth(miss, 1 - e) - _each_truth(hit, e))
    slope = _slope(coded, layout, parameters, truth, pull)
    if layout.many:
        slope[:, layout.harder + 1] = (truth * (of_m - coded.errors)).sum(axis=1)
    return Rows(value, slope, truth)


def _odds(coded: Coded, layout: Layout, parameters: Floats) -> Floats:
    """The log odds of an error of every answer where the model is right, and where it is wrong: (rows, 2, answers)."""
    tau = np.zeros(max(layout.annotators, 1))
    tau[: layout.apart.stop - layout.apart.start] = parameters[layout.apart]
    beta = parameters[layout.error] + tau[coded.who]
    return np.stack((beta, beta + parameters[layout.harder]), axis=1)


def _each_truth(which: NDArray[np.bool_], values: Floats) -> Floats:
    """The values of the answers ``which``, 0 elsewhere: those where the model is right under the first truth, those
    where it is wrong under each other."""
    found = np.empty(which.shape)
    np.multiply(which[:, :1], values[:, :1], out=found[:, :1])
    np.multiply(which[:, 1:], values[:, 1:], out=found[:, 1:])
    return found


def _by_truth(which: NDArray[np.bool_], values: Floats) -> Floats:
    """The sums of the values of the answers ``which`` under each truth."""
    return np.asarray(_each_truth(which, values).sum(axis=2))


def _log_sum(log: Floats) -> Floats:
    """``log Σ exp`` of every row."""
    most = log.max(axis=1)
    return np.asarray(most + np.log(np.exp(log - most[:, None]).sum(axis=1)))


def _prior(coded: Coded, M: float, parameters: Floats, groups: int) -> tuple[Floats, Floats]:
    """The logarithm of ``P(t)`` with the factor of ways, and its derivative by ``log M``."""
    rates, many = parameters[:groups], np.arange(coded.occur + 1)
    ways = M - many[:-1]
    open_ways = np.maximum(ways, LEAST)
    # by the number of other classes in a row, which are few
    factor = np.concatenate(([0.0], np.cumsum(np.log(open_ways))))[coded.distinct]
    of_factor = np.concatenate(([0.0], np.cumsum(np.where(ways > LEAST, M / open_ways, 0.0))))[coded.distinct]
    none, tiny = 1 - many / M, 1e-9
    beside = np.log(np.maximum(none, tiny))[coded.distinct]
    of_beside = np.where(none > tiny, many / M / np.maximum(none, tiny), 0.0)[coded.distinct]
    prior, of_m = np.empty((len(coded), coded.occur + 2)), np.empty((len(coded), coded.occur + 2))
    failed = factor - np.logaddexp(0, -rates)[coded.group]
    prior[:, 0] = factor - np.logaddexp(0, rates)[coded.group]
    prior[:, 1:-1] = np.where(coded.beyond, NEVER, (failed - math.log(M))[:, None])
    prior[:, -1] = failed + beside
    of_m[:, 0], of_m[:, 1:-1], of_m[:, -1] = of_factor, (of_factor - 1)[:, None], of_factor + of_beside
    return prior, of_m


def _slope(coded: Coded, layout: Layout, parameters: Floats, truth: Floats, pull: Floats) -> Floats:
    """The gradient by all but ``log M``; ``pull`` is that by the log odds of every answer under every truth."""
    row = np.arange(len(coded))
    slope = np.zeros((len(coded), layout.size))
    slope[row, coded.group] = 1 - truth[:, 0] - expit(parameters[: layout.groups])[coded.group]
    each = pull.sum(axis=1)
    slope[:, layout.error] = each.sum(axis=1)
    slope[:, layout.harder] = pull[:, 1:].sum(axis=(1, 2))
    first = layout.apart.start
    for column in range(coded.code.shape[1]) if layout.apart.stop > first else ():
        slope[row, first + coded.who[:, column]] += each[:, column]
    return slope

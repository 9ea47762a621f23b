"""The likelihood of what was answered of each input, with its gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

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
    occur = int(coded.distinct.max(initial=0))
    state = np.minimum(np.arange(occur + 2), 1)  # 0 where the model is right, 1 where it is wrong
    M = layout.alternatives(parameters)
    odds = _odds(coded, layout, parameters)
    right, wrong = -np.logaddexp(0, odds), -np.logaddexp(0, -odds) - math.log(M)
    hit, miss = _hits(coded, occur)
    log = np.where(hit, right[:, state], 0.0).sum(axis=2) + np.where(miss, wrong[:, state], 0.0).sum(axis=2)
    prior, of_m = _prior(coded, M, parameters[coded.group], occur)
    log = np.where(_excluded(coded, occur), 2 * NEVER, log + prior)
    value = np.asarray(logsumexp(log, axis=1))
    truth = np.exp(log - value[:, None])
    e = expit(odds)[:, state]
    pull = truth[:, :, None] * (np.where(hit, -e, 0.0) + np.where(miss, 1 - e, 0.0))
    slope = _slope(coded, layout, parameters, truth, pull)
    if layout.many:
        slope[:, layout.harder + 1] = (truth * (of_m - miss.sum(axis=2))).sum(axis=1)
    return Rows(value, slope, truth)


def _odds(coded: Coded, layout: Layout, parameters: Floats) -> Floats:
    """The log odds of an error of every answer where the model is right, and where it is wrong: (rows, 2, answers)."""
    tau = np.zeros(max(layout.annotators, 1))
    tau[: layout.apart.stop - layout.apart.start] = parameters[layout.apart]
    beta = parameters[layout.error] + tau[coded.who]
    return np.stack((beta, beta + parameters[layout.harder]), axis=1)


def _hits(coded: Coded, occur: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which answers are right under each truth, and which are wrong: (rows, truths, answers)."""
    code, there = coded.code[:, None, :], coded.code[:, None, :] >= 0
    hit = (code == np.arange(occur + 2)[None, :, None]) & there
    hit[:, -1] = False
    return hit, there & ~hit


def _prior(coded: Coded, M: float, rate: Floats, occur: int) -> tuple[Floats, Floats]:
    """The logarithm of ``P(t)`` with the factor of ways, and its derivative by ``log M``."""
    place = np.arange(max(occur, 1))
    ways, used = M - place, place[None, :] < coded.distinct[:, None]
    open_ways = np.maximum(ways, LEAST)
    prior = np.zeros((len(coded), occur + 2)) + (np.log(open_ways) * used).sum(axis=1)[:, None]
    of_m = np.zeros_like(prior) + (np.where(ways > LEAST, M / open_ways, 0.0) * used).sum(axis=1)[:, None]
    prior[:, 0] -= np.logaddexp(0, rate)
    prior[:, 1:] -= np.logaddexp(0, -rate)[:, None]
    prior[:, 1:-1] -= math.log(M)
    of_m[:, 1:-1] -= 1
    beyond = np.arange(1, occur + 1)[None, :] > coded.distinct[:, None]
    prior[:, 1:-1] = np.where(beyond, NEVER, prior[:, 1:-1])
    none, tiny = 1 - coded.distinct / M, 1e-9
    prior[:, -1] += np.log(np.maximum(none, tiny))
    of_m[:, -1] += np.where(none > tiny, coded.distinct / M / np.maximum(none, tiny), 0.0)
    return prior, of_m


def _excluded(coded: Coded, occur: int) -> NDArray[np.bool_]:
    """The truths that a known truth rules out."""
    return np.asarray((coded.truth >= 0)[:, None] & (np.arange(occur + 2)[None, :] != coded.truth[:, None]))


def _slope(coded: Coded, layout: Layout, parameters: Floats, truth: Floats, pull: Floats) -> Floats:
    """The gradient by all but ``log M``; ``pull`` is that by the log odds of every answer under every truth."""
    row = np.arange(len(coded))
    slope = np.zeros((len(coded), layout.size))
    slope[row, coded.group] = 1 - truth[:, 0] - expit(parameters[coded.group])
    each = pull.sum(axis=1)
    slope[:, layout.error] = each.sum(axis=1)
    slope[:, layout.harder] = pull[:, 1:].sum(axis=(1, 2))
    first = layout.apart.start
    for column in range(coded.code.shape[1]) if layout.apart.stop > first else ():
        np.add.at(slope, (row, first + coded.who[:, column]), each[:, column])
    return slope

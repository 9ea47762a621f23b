"""The error model of a team: how likely each annotator is to say something else than the truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtri

from opmon.annotators._layout import Layout
from opmon.annotators._rows import rows
from opmon.annotators.opinions import Coded
from opmon.errors import InputError
from opmon.types import Floats

STARTS = (-1.0, -2.5)
"""The log odds of a failure at which searches begin: a search may end in a corner where everybody errs."""
STEP = 1e-4
HELD = 1e6
"""The information on a parameter that is held."""
FLATTEST = 0.1
"""The least information in any direction: a log odds is known within three or so, whatever the answers."""
SLIGHT = 0.02
"""Failures, and successes, added to each failure rate, so that it is never exactly 0 or 1."""


@dataclass(frozen=True)
class AnnotatorError:
    """How often an annotator says something else than the truth, with an interval."""

    annotator: str
    error: float
    low: float
    high: float
    checked: int
    """Their answers that another answer, or the truth, is there to check."""


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """A latent-class model of truth and answers, fitted by penalised likelihood, every input with its weight.

    The model fails on an input with probability ``θ``. Annotator ``a`` says something else than the truth with log odds
    ``β + τ_a`` where the model is right and ``β + δ + τ_a`` where it is wrong: what is hard is hard for both. A wrong
    answer is one of ``M`` classes that are likely to be taken for the truth, each as likely; so is a wrong prediction.
    This is the model of Dawid and Skene (Applied Statistics 28, 1979) with ``β, δ, log M`` and one ``τ_a`` each in the
    place of ``K²`` confusions per annotator, for which labels are far too few. With two classes ``M`` is 1.

    What identifies it: ``β`` how often two answers to one input differ, or an answer and a known truth; ``θ`` the
    answers that contradict the model, less those errors explain; that annotators err on less than half. ``δ`` and ``M``
    are hardly seen in two answers: they keep what was supposed of them (:mod:`._layout`) with its uncertainty.

    It fails where annotators err together on the same inputs for reasons that the state of the input does not tell:
    such errors look like truth. Only known truths see them.

    >>> from opmon.annotators.opinions import Opinion
    >>> alike, ben = Opinion({"ann": "7", "ben": "7"}, "7"), Opinion({"ann": "7", "ben": "1"}, "7")
    >>> model = fit(Coded.of([alike] * 180 + [ben] * 20), np.ones(200), classes=10)
    >>> [round(each.error, 2) for each in model.errors()]
    [0.01, 0.09]
    """

    coded: Coded
    layout: Layout
    parameters: Floats
    information: Floats
    """The second derivatives of the penalised log-likelihood, with the sign turned."""
    scores: Floats
    """The gradient of the log-likelihood of each row, without its weight."""
    truth: Floats
    """Per row the probability of each truth, as :class:`._rows.Rows` has them."""

    @property
    def failure_rate(self) -> float:
        """``θ`` of the first group, the inputs drawn."""
        return float(expit(self.parameters[0]))

    @property
    def failed(self) -> Floats:
        """How likely each row is a failure of the model, after its answers."""
        return np.asarray(1 - self.truth[:, 0])

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the parameters."""
        return np.asarray(np.linalg.inv(self.information))

    def errors(self, level: float = 0.95) -> list[AnnotatorError]:
        """Every annotator's error over the inputs drawn, those that the model fails on included."""
        checked: Counter[int] = Counter()
        for who, code, truth in zip(self.coded.who, self.coded.code, self.coded.truth, strict=True):
            there = who[code >= 0].tolist()
            checked.update(there if truth >= 0 or len(there) > 1 else ())
        return [self._error(at, checked[at], level) for at in range(len(self.coded.annotators))]

    def _error(self, at: int, checked: int, level: float) -> AnnotatorError:
        lever = np.zeros(self.layout.size)
        lever[self.layout.error] = 1.0
        if self.layout.annotators > 1:
            lever[self.layout.apart.start + at] = 1.0
        odds = float(lever @ self.parameters)
        radius = float(ndtri(0.5 + level / 2) * np.sqrt(lever @ self.covariance @ lever))
        theta, harder = self.failure_rate, self.parameters[self.layout.harder]
        error, low, high = (
            float((1 - theta) * expit(each) + theta * expit(each + harder))
            for each in (odds, odds - radius, odds + radius)
        )
        return AnnotatorError(self.coded.annotators[at], error, low, high, checked)


class Fitting:
    """The penalised likelihood of weighted rows, and where it is largest."""

    def __init__(self, coded: Coded, weights: Floats, classes: int) -> None:
        if classes < 2:
            raise InputError(f"an error model needs at least two classes; got {classes}")
        self.layout = Layout(int(coded.group.max(initial=0)) + 1, len(coded.annotators), classes)
        self.coded, self.weights, self.back = coded.grouped(weights)
        self._centre, self._precision = self.layout.centre, self.layout.precision
        self._limits = self.layout.limits

    def search(self) -> Floats:
        """The best parameters, from what is supposed and several failure rates."""
        supposed = self._centre[self.layout.groups :]
        found = [self.best(np.concatenate((np.full(self.layout.groups, start), supposed))) for start in STARTS]
        return min(found, key=lambda each: each[1])[0]

    def best(self, start: Floats, failure: float | None = None) -> tuple[Floats, float]:
        """The best parameters from a start, and the least value; the log odds of a failure may be held."""
        limits = list(self._limits)
        if failure is not None:
            limits[0] = (failure, failure)
        lows, highs = np.array(limits).T
        unit = max(float(self.weights.sum()), 1.0)  # a first step of usual length

        def scaled(parameters: Floats) -> tuple[float, Floats]:
            value, gradient = self.lost(parameters)
            return value / unit, gradient / unit

        options = {"maxiter": 300, "ftol": 1e-10, "gtol": 1e-6}
        first = np.clip(start, lows, highs)
        found = minimize(scaled, first, jac=True, method="L-BFGS-B", bounds=limits, options=options)
        return np.asarray(found.x, dtype=np.float64), float(found.fun) * unit

    def lost(self, parameters: Floats) -> tuple[float, Floats]:
        """The penalised log-likelihood with the sign turned, and its gradient."""
        found = rows(self.coded, self.layout, parameters)
        away, rates = parameters - self._centre, parameters[: self.layout.groups]
        slight = SLIGHT * float(np.log(expit(rates)).sum() + np.log(expit(-rates)).sum())
        value = float(self.weights @ found.value) - 0.5 * float(self._precision @ away**2) + slight
        gradient = self.weights @ found.slope - self._precision * away
        gradient[: self.layout.groups] += SLIGHT * (1 - 2 * expit(rates))
        return -value, -gradient

    def curvature(self, parameters: Floats) -> Floats:
        """The second derivatives, kept positive in directions of which nothing is known.

        Along a parameter that is at its limit the likelihood has a slope and no peak: it is held there, and how far it
        may be away is left to the profile.
        """
        hessian = np.empty((self.layout.size, self.layout.size))
        for k, step in enumerate(STEP * np.eye(self.layout.size)):
            hessian[k] = (self.lost(parameters + step)[1] - self.lost(parameters - step)[1]) / (2 * STEP)
        lows, highs = np.array(self._limits).T
        held = (parameters - lows < STEP) | (highs - parameters < STEP)
        hessian = np.where(held[:, None] | held[None, :], HELD * np.diag(held), (hessian + hessian.T) / 2)
        values, vectors = np.linalg.eigh(hessian)
        return np.asarray((vectors * np.maximum(values, FLATTEST)) @ vectors.T)


def fit(coded: Coded, weights: Floats, classes: int) -> ErrorModel:
    """Fit the error model; ``weights`` are how many independent inputs each row counts for."""
    if len(weights) != len(coded):
        raise InputError(f"one weight per row: got {len(weights)} for {len(coded)} rows")
    fitting = Fitting(coded, weights, classes)
    best = fitting.search()
    found = rows(fitting.coded, fitting.layout, best)
    back = fitting.back
    return ErrorModel(coded, fitting.layout, best, fitting.curvature(best), found.slope[back], found.truth[back])

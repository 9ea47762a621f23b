"""opmon's own surrogate: Kirkwood without noise, corrected by the inputs' own story and by what it is seen to miss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from opmon.robustness.space import Tests
from opmon.robustness.surrogates.gaussian_process import Fitted, Interactions, choose, fit
from opmon.robustness.surrogates.inputs import added_margins, all_pairs
from opmon.robustness.surrogates.kirkwood import superposed
from opmon.robustness.surrogates.known import Known, Predicted
from opmon.types import Floats


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A prediction of every test in ``tests`` (order ≥ 3)."""

    tests: Tests
    predicted: Predicted
    shared: Floats
    """The standard error that all of them have in common."""
    fitted: Fitted
    rows: list[int]
    """The tests among ``tests`` that were measured."""

    def next_tests(self, count: int, noise: float) -> list[int]:
        """The rows of ``tests`` most worth running."""
        return choose(self.fitted, count, noise)


def interactions(known: Known, tests: Tests, levels: int, level: float = 0.9) -> Surrogate:
    """Predicts tests of order ≥ 3 from all of order ≤ 2 and from whatever of order ≥ 3 was measured.

    Kirkwood's superposition of pairs that are rid of their noise is what is expected. How far a measured test is from
    it is a Gaussian process: the error of the superposition, a linear blend of how far two other opinions are from it
    (the inputs right under all pairs, and margins added), and interactions that vanish wherever a severity is 0.
    Intervals add what no other test tells, since of a finite set of inputs no share is quite smooth, and are widened
    until the measured tests, left out one by one, are covered as often as stated; without any of them they are a guess.

    See :mod:`opmon.robustness.surrogates.gaussian_process` for the formula.
    """
    mean, doubt = superposed(known, tests, levels)
    others = [all_pairs(known, tests)]
    if known.margins is not None:
        others.append(added_margins(known, tests))
    features = np.stack(others, axis=1) - mean[:, None]
    pairs = [(row, known.rows[key]) for row, key in enumerate(tests.chains()) if key in known.rows]
    rows, places = [row for row, _ in pairs], [place for _, place in pairs]
    fitted = fit(
        Interactions(tests, features, levels, doubt),
        rows,
        known.measured.share[places] - mean[rows],
        known.outcomes.noise[np.ix_(places, places)] + 1e-8 * np.eye(len(places)),
        level,
    )
    value = np.clip(mean + fitted.mean, 0, 1)
    shared = _shared_error(known, value)
    own = known.outcomes.own / known.measured.right.shape[1]  # of a finite set of inputs no share is quite smooth
    error = _apart(tests) * np.sqrt(fitted.variance * fitted.stretch**2 + shared**2 + own)
    half = ndtri(0.5 + level / 2) * error
    predicted = Predicted(value, error, np.maximum(value - half, 0), np.minimum(value + half, 1))
    return Surrogate(tests, predicted, shared, fitted, rows)


def _apart(tests: Tests) -> float:
    """How much wider intervals are for triples being told apart too little: all of them have one scale, fitted to tests
    of every triple, and the more triples, the more there are whose interactions are above it. 1.06 for four
    perturbations, 1.18 for five; found on synthetic models."""
    triples = math.comb(tests.severities.shape[1], 3)
    return min(1 + 0.02 * (triples - 1), 1.5)


def _shared_error(known: Known, value: Floats) -> Floats:
    """The standard error that all measurements have in common, because they look at the same inputs: no number of tests
    averages it out."""
    share, partial = known.measured.share, known.measured.error > 0
    if not partial.any():
        return np.zeros(len(value))
    size = np.sqrt(np.maximum(share * (1 - share), 0.01)[partial])
    scale = np.sqrt(max(0.0, float(np.mean(known.outcomes.noise[np.ix_(partial, partial)] / np.outer(size, size)))))
    return np.asarray(scale * np.sqrt(np.maximum(value * (1 - value), 0.01)))

"""Predictions made input by input, from what the same inputs did under the pairs.

A prediction g_σi is made for the inputs C that all pairs looked at. Its mean over all inputs is

    f_σ = mean_C g_σ + (m̂ − mean_C x)·β_σ,

x the outcomes (and bounded margins) of the singles and pairs of σ, m̂ their means over all inputs as they were estimated
from every input that each of them looked at, and β_σ the ridge regression of g_σ on x in C.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from opmon.robustness.space import Tests
from opmon.robustness.surrogates.known import Known
from opmon.types import Floats

_RIDGE = 1.0
Parts = tuple[list[int], list[tuple[int, int, int]]]


def all_pairs(known: Known, tests: Tests) -> Floats:
    """The share of inputs that are right under every pair of the test: an input that a pair breaks stays broken.

    An upper bound where damage only grows.
    """
    right = known.measured.right[:, known.common] > 0

    def guesses() -> Iterator[tuple[Parts, NDArray[np.bool_]]]:
        for singles, pairs in known.parts(tests):
            yield (singles, pairs), np.asarray(right[[row for *_, row in pairs]].all(axis=0))

    return _over_all(known, guesses())


def added_margins(known: Known, tests: Tests) -> Floats:
    """Margins added with their pair interactions, m_σ = m_0 + Σ a_j + Σ a_ij for every input; right where m_σ > 0.

    Needs a model that gives scores. The inputs near an answer's edge are told from those far from it.
    """
    if known.measured.margin is None:
        return all_pairs(known, tests)
    margin, base = known.measured.margin[:, known.common], known.row(())

    def guesses() -> Iterator[tuple[Parts, NDArray[np.bool_]]]:
        for singles, pairs in known.parts(tests):
            # every single stands once in its own term and once, negative, in each of its order − 1 pairs
            order = len(singles)
            total = (1 - order + len(pairs)) * margin[base] + (2 - order) * margin[singles].sum(axis=0)
            yield (singles, pairs), np.asarray(total + margin[[row for *_, row in pairs]].sum(axis=0) > 0)

    return _over_all(known, guesses())


def _over_all(known: Known, guesses: Iterator[tuple[Parts, NDArray[np.bool_]]]) -> Floats:
    """f_σ of each guess."""
    common, base = known.common, known.row(())
    weights = np.ones(len(common)) if known.measured.weights is None else known.measured.weights[common]
    weights = weights / weights.sum()
    x, means = known.controls
    x = x[..., common]
    apart = means - x @ weights
    shares = []
    for (singles, pairs), guess in guesses:
        value = float(guess @ weights)
        rows = [base, *singles, *(row for *_, row in pairs)]
        if apart[:, rows].any():
            columns = x[:, rows].reshape(-1, len(common))
            centred = columns - (columns @ weights)[:, None]
            gram = (centred * weights) @ centred.T + _RIDGE / len(common) * np.eye(len(columns))
            value += float(np.linalg.solve(gram, (centred * weights) @ guess) @ apart[:, rows].ravel())
        shares.append(value)
    return np.array(shares)

"""Predictions made input by input, from what the same inputs did under the pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from opmon.robustness.space import Tests
from opmon.robustness.surrogates.core import Floats, Known

_AT_ONCE = 500


def all_pairs(known: Known, tests: Tests) -> Floats:
    """The share of inputs that are right under every pair of the test: an input that a pair breaks stays broken.

    An upper bound where damage only grows.
    """
    right = known.measured.right

    def guess(_: list[int], pairs: list[tuple[int, int, int]], n: int) -> NDArray[np.bool_]:
        return np.asarray((right[[row for *_, row in pairs], :n] > 0).all(axis=0))

    return _by_input(known, tests, guess)


def added_margins(known: Known, tests: Tests) -> Floats:
    """Margins added with their pair interactions, m_σ = m_0 + Σ a_j + Σ a_ij for every input; right where m_σ > 0.

    Needs a model that gives scores. The inputs near an answer's edge are told from those far from it.
    """
    margin = known.measured.margin
    if margin is None:
        return all_pairs(known, tests)
    base = known.row(())

    def guess(singles: list[int], pairs: list[tuple[int, int, int]], n: int) -> NDArray[np.bool_]:
        # every single stands once in its own term and once, negative, in each of its order − 1 pairs
        order = len(singles)
        weight = 1 - order + len(pairs)
        total = weight * margin[base, :n] + (2 - order) * margin[singles, :n].sum(axis=0)
        return np.asarray(total + margin[[row for *_, row in pairs], :n].sum(axis=0) > 0)

    return _by_input(known, tests, guess)


def _by_input(
    known: Known, tests: Tests, guess: Callable[[list[int], list[tuple[int, int, int]], int], NDArray[np.bool_]]
) -> Floats:
    """The guessed shares, carried over to all inputs by the anchors."""
    seen = known.measured.seen
    values = np.empty(len(tests))
    waiting: dict[int, list[tuple[int, NDArray[np.bool_]]]] = {}

    def finish(n: int) -> None:
        found = waiting.pop(n)
        values[[position for position, _ in found]] = known.anchors.estimate(np.array([o for _, o in found]), 0.95)[0]

    for position, (singles, pairs) in enumerate(known.parts(tests)):
        rows = singles + [row for *_, row in pairs]
        n = int(seen[rows].min()) if rows else int(seen[known.row(())])
        waiting.setdefault(n, []).append((position, guess(singles, pairs, n)))
        if len(waiting[n]) >= _AT_ONCE:
            finish(n)
    for n in list(waiting):
        finish(n)
    return values

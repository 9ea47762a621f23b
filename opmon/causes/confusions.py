"""Which classes are taken for which more often than how often each is mistaken would make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmon.types import Floats

MOST_CLASSES = 200
FEWEST = 3
ERROR = 0.05
MOST_PAIRS = 40
PRIOR = 0.25


@dataclass(frozen=True)
class Confusion:
    """A pair of classes, what the model says and what is true, and its corrected p-value."""

    predicted: str
    truth: str
    expected: float
    """How many failures it would have if the model's mistakes did not depend on the truth."""
    p: float


def confusions(predicted: Sequence[str], truth: Sequence[str]) -> list[Confusion]:
    """The pairs that come too often, the least likely first.

    What is expected of a pair is what all others tell: quasi-independence, ``n_ab = α_a β_b`` off the diagonal, fitted
    to the other pairs by iterated proportions (Goodman, Journal of the American Statistical Association 63, 1968). Its
    count is held against Poisson's distribution, and p is multiplied by the number of pairs (Bonferroni).
    """
    from scipy.special import pdtrc

    classes = sorted({*predicted, *truth})
    if len(classes) < 3 or len(classes) > MOST_CLASSES:
        return []
    number = {name: at for at, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)))
    np.add.at(counts, ([number[each] for each in predicted], [number[each] for each in truth]), 1)
    tested = len(classes) * (len(classes) - 1)
    frequent = [(int(a), int(b)) for a, b in np.argwhere(counts >= FEWEST) if a != b]
    found = []
    for a, b in sorted(frequent, key=lambda pair: -counts[pair])[:MOST_PAIRS]:
        expected = _of_others(counts, a, b)
        p = min(1.0, tested * float(pdtrc(counts[a, b] - 1, expected)))
        if p <= ERROR:
            found.append(Confusion(classes[a], classes[b], expected, p))
    return sorted(found, key=lambda each: each.p)


def _of_others(counts: Floats, a: int, b: int) -> float:
    """``α_a β_b`` of the fit to all other pairs, each with a little added: a class may have no other."""
    there = 1.0 - np.eye(len(counts))
    there[a, b] = 0
    wanted = (counts + PRIOR) * there
    row, column = np.ones(len(counts)), np.ones(len(counts))
    for _ in range(30):
        row = wanted.sum(axis=1) / np.maximum(there @ column, 1e-9)
        column = wanted.sum(axis=0) / np.maximum(row @ there, 1e-9)
    return float(row[a] * column[b])

"""Which classes are taken for which more often than how often each is mistaken would make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmon.types import Floats

MOST_CLASSES = 200
FEWEST = 3
ERROR = 0.05


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

    What is expected is quasi-independence: ``n_ab = α_a β_b`` off the diagonal, by iterated proportional fitting
    (Goodman, Journal of the American Statistical Association 63, 1968). A pair's count is held against Poisson's
    distribution, and p is multiplied by the number of pairs (Bonferroni).
    """
    from scipy.special import pdtrc

    classes = sorted({*predicted, *truth})
    if len(classes) < 3 or len(classes) > MOST_CLASSES:
        return []
    number = {name: at for at, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)))
    np.add.at(counts, ([number[each] for each in predicted], [number[each] for each in truth]), 1)
    np.fill_diagonal(counts, 0)
    expected = _independent(counts)
    tested = int((expected > 0).sum())
    found = []
    for a, b in np.argwhere(counts >= FEWEST):
        p = min(1.0, tested * float(pdtrc(counts[a, b] - 1, max(expected[a, b], 1e-9))))
        if p <= ERROR:
            found.append(Confusion(classes[a], classes[b], float(expected[a, b]), p))
    return sorted(found, key=lambda each: each.p)


def _independent(counts: Floats) -> Floats:
    fitted = 1.0 - np.eye(len(counts))
    for _ in range(50):
        for axis in (0, 1):
            had, wanted = fitted.sum(axis, keepdims=True), counts.sum(axis, keepdims=True)
            fitted = fitted * np.divide(wanted, had, out=np.zeros_like(wanted), where=had > 0)
    return np.asarray(fitted)

"""Two tomographies side by side: the same question of both, and whether the difference is more than chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from opmon.errors import InputError
from opmon.robustness.outcomes import Outcomes
from opmon.robustness.result import Answer, Tomography

_MOST = 1500


@dataclass(frozen=True, slots=True)
class Comparison:
    """R(Q) of two tomographies, its ``difference`` (second less first) and an interval of it, of ``level``.

    The interval holds the difference in production, of which the inputs are a sample. ``paired``: both looked at the
    same inputs, and what all inputs have in common does not count.
    """

    question: str
    first: Answer
    second: Answer
    difference: float
    low: float
    high: float
    level: float
    paired: bool

    @property
    def beyond_chance(self) -> bool:
        return self.low > 0 or self.high < 0


def compared(first: Tomography, second: Tomography, question: str = "all") -> Comparison:
    """``question`` asked of both; an error where they say different things. Both are asked about the tests that meet it
    in the first: the quality of a test is each one's own.

    With d_i the difference of input i's mean over the tests asked about, the variance of the difference is
    Σ w_i² (d_i − d̄)² (Σ w_i = 1) plus those of both means on the inputs at hand. Where the inputs are not the same, it
    is the sum of both variances in production.
    """
    _require_alike(first, second)
    rows = first.asked(question)
    one, other = first.answer(question, rows), second.answer(question, rows)
    level = min(first.level, second.level)
    a, b = first.outcomes, second.outcomes
    paired = a is not None and b is not None and a.same_inputs(b)
    if a is not None and b is not None and paired:
        sampling = _paired(a, b, _standing_for(first, rows, np.intersect1d(a.rows, b.rows)))
    else:
        sampling = first.sampling_variance(one.value) + second.sampling_variance(other.value)
    error = math.sqrt(sampling + first.error_of_mean(rows) ** 2 + second.error_of_mean(rows) ** 2)
    difference, half = other.value - one.value, float(ndtri(0.5 + level / 2)) * error
    return Comparison(question, one, other, difference, difference - half, difference + half, level, paired)


def _paired(first: Outcomes, second: Outcomes, rows: NDArray[np.int64]) -> float:
    (before, left), (after, left_too) = first.mean_over(rows), second.mean_over(rows)
    share = first.weights / first.weights.sum()
    apart = after - before
    apart = apart - share @ apart
    count = len(share)
    return float((share**2 @ apart**2) * count / max(count - 1, 1) + (share**2).sum() * (left + left_too))


def _standing_for(result: Tomography, rows: NDArray[np.int64], measured: NDArray[np.int64]) -> NDArray[np.int64]:
    """The tests of a question that both measured; where there are none, the measured ones that are nearest to them."""
    own = np.intersect1d(rows, measured)
    if len(own):
        return own
    if len(rows) > _MOST:
        rows = rows[np.linspace(0, len(rows) - 1, _MOST).astype(int)]
    asked, there = (result.tests.severities[which].astype(np.int64) for which in (rows, measured))
    apart = (asked**2).sum(axis=1)[:, None] + (there**2).sum(axis=1)[None] - 2 * asked @ there.T
    return np.unique(measured[apart.argmin(axis=1)])


def _require_alike(first: Tomography, second: Tomography) -> None:
    one, other = first.space, second.space
    if one.names != other.names:
        raise InputError(
            f"only tomographies of the same space are compared; got {', '.join(one.names)} and {', '.join(other.names)}"
        )
    words = {
        "ordered": "whether the order of perturbations counts (--ordered)",
        "levels": "the number of severities",
        "max_order": "how many perturbations are combined at most (max_order)",
    }
    for key, what in words.items():
        if getattr(one, key) != getattr(other, key):
            raise InputError(
                f"only tomographies of the same space are compared, and these differ in {what}: {getattr(one, key)} "
                f"and {getattr(other, key)}; run both alike"
            )
    if first.facts.get("relation") != second.facts.get("relation"):
        raise InputError(
            f"these cannot be compared: in the first an input is right when it gets {first.facts.get('relation')!r}, "
            f"in the second {second.facts.get('relation')!r}; run both with labels (--label), or both without"
        )
    if first.facts.get("tolerance") != second.facts.get("tolerance"):
        raise InputError(
            f"these cannot be compared: answers are right within {first.facts.get('tolerance')} of the truth in the "
            f"first and {second.facts.get('tolerance')} in the second; run both with one tolerance"
        )
    made, made_too = first.facts.get("perturbations", {}), second.facts.get("perturbations", {})
    for name in one.names:
        if made.get(name) != made_too.get(name):
            raise InputError(
                f"these cannot be compared: {name!r} is {made.get(name)} in the first and {made_too.get(name)} in the "
                f"second; run both with the same perturbations"
            )

"""Numbers of verdicts in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opmon.types import Estimate
from opmon.wording import counted, percent


def in_words(estimate: Estimate) -> str:
    """The estimate with its interval and where it comes from."""
    if estimate.counted:
        value = estimate.quantity.text(estimate.value)
        return f"{estimate.quantity.name} {value}, counted over all {counted(estimate.frame_size, 'input')}"
    value, low, high = estimate.quantity.texts(estimate.value, estimate.low, estimate.high)
    text = (
        f"{estimate.quantity.name} {value} ({percent(estimate.level)} interval {low} to {high}, from {estimate.n:,} "
        f"draws of {counted(estimate.frame_size, 'input')}, {percent(estimate.response, 0)} answered)"
    )
    return text + (", provisional while answers come in" if estimate.provisional else "")


def share_of_line(evidence: float, what: str = "an alarm") -> str:
    """The share of the evidence that ``what`` takes, in words.

    >>> share_of_line(0.04), share_of_line(0.0), share_of_line(12.0)
    ('4 % of what an alarm takes', 'less than 0.1 % of what an alarm takes', '12 times what an alarm takes')
    """
    if evidence >= 1:
        return f"{evidence:,.3g} times what {what} takes" if evidence < 1e6 else f"far beyond what {what} takes"
    if evidence < 0.001:
        return f"less than 0.1 % of what {what} takes"
    return f"{100 * evidence:.2g} % of what {what} takes"


def labels_to_go(capital: Sequence[float], growth: Sequence[float], labels: int) -> int | None:
    """About how many more labels like these reach the line; None where they lead away from it.

    The capital of every bet grows by its own ``growth`` with each ``labels`` of them: a bold bet that holds little now
    may be the first to reach it.

    >>> labels_to_go([0.1], [1.0], 100), labels_to_go([0.1, 0.001], [0.1, 3.0], 100)
    (231, 226)
    """
    growing = [(have, more) for have, more in zip(capital, growth, strict=True) if have > 0 and more > 1e-9]
    if sum(capital) >= 1 or not growing:
        return None
    few, many = 0.0, min(-math.log(have) / more for have, more in growing)
    for _ in range(60):
        middle = (few + many) / 2
        reached = math.fsum(have * math.exp(more * middle) for have, more in growing) >= 1
        few, many = (few, middle) if reached else (middle, many)
    return math.ceil(many * labels)

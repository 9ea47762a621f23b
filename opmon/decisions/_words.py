"""Numbers of verdicts in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opmon.quantities import ACCURACY
from opmon.types import Estimate
from opmon.wording import counted, percent


def in_words(estimate: Estimate) -> str:
    """The estimate with its interval and where it comes from."""
    if estimate.counted:
        value = estimate.quantity.text(estimate.value)
        return f"{estimate.quantity.name} {value}, counted over all {counted(estimate.frame_size, 'input')}"
    value, low, high = estimate.quantity.texts(estimate.value, estimate.low, estimate.high)
    drawn = f"{counted(estimate.n, 'draw')} of {counted(estimate.frame_size, 'input')}"
    text = (
        f"{estimate.quantity.name} {value} ({percent(estimate.level)} interval {low} to {high}, from {drawn}, "
        f"{percent(estimate.response, 0)} answered)"
    )
    return text + (", provisional while answers come in" if estimate.provisional else "")


def line_in_words(threshold: float, estimate: Estimate | None = None) -> str:
    """The line of a rule about shares, as it was written down and as its estimates are written.

    >>> from opmon.quantities import MEAN_SCORE
    >>> line_in_words(0.9975), line_in_words(0.8, Estimate(0.82, 0.7, 0.9, 9, 99, 1.0, "srs", quantity=MEAN_SCORE))
    ('99.75 %', '0.8')
    """
    quantity = ACCURACY if estimate is None or not estimate.quantity.share else estimate.quantity
    return quantity.exactly(threshold)


def out_of_line(estimate: Estimate, threshold: float) -> str:
    """Why no alarm is made of an interval that lies on the wrong side of a line; empty where it does not.

    >>> out_of_line(Estimate(0.74, 0.64, 0.84, 60, 900, 1.0, "srs"), 0.85)
    'the whole interval is below the line, as that of 1 round in 40 of a model at the line: one alone is no alarm; '
    >>> out_of_line(Estimate(0.74, 0.64, 0.86, 60, 900, 1.0, "srs"), 0.85)
    ''
    """
    badness, level = estimate.quantity.badness, estimate.level
    if estimate.counted or not min(badness(estimate.low), badness(estimate.high)) > badness(threshold):
        return ""
    side, often = "below" if estimate.high < threshold else "above", round(2 / (1 - level))
    return (
        f"the whole interval is {side} the line, as that of 1 round in {often:,} of a model at the line: one "
        "alone is no alarm; "
    )


def share_of_line(evidence: float, what: str = "an alarm") -> str:
    """The share of the evidence that ``what`` takes, in words.

    >>> share_of_line(0.04), share_of_line(0.0), share_of_line(12.0)
    ('4 % of what an alarm takes', 'less than 0.1 % of what an alarm takes', '12 times what an alarm takes')
    >>> share_of_line(0.9996)
    '99 % of what an alarm takes'
    >>> share_of_line(56_234.5)
    '56,200 times what an alarm takes'
    """
    if evidence >= 1:
        return (
            f"{float(f'{evidence:.3g}'):,.12g} times what {what} takes"
            if evidence < 1e6
            else f"far beyond what {what} takes"
        )
    if evidence < 0.001:
        return f"less than 0.1 % of what {what} takes"
    near = min(float(f"{100 * evidence:.2g}"), 99.0)  # what is nearly enough is not enough
    return f"{near:g} % of what {what} takes"


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


def tell_apart(disagreements: int) -> str:
    """How many draws tell two versions apart, in words."""
    return f"{disagreements:,} of them {'tells' if disagreements == 1 else 'tell'} the two apart"


def were_known(rounds: int) -> str:
    """That so many rounds were there before both versions, and what that may do."""
    return (
        f"{rounds} of the rounds {'was' if rounds == 1 else 'were'} opened before both versions were registered; a "
        "version that was trained on their labels looks better than it is"
    )

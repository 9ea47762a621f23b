"""The measure of a round whose inputs all have a truth: nothing is estimated."""

from __future__ import annotations

import numpy as np

from opmon import quantities
from opmon.errors import InputError
from opmon.estimators.intervals import wilson
from opmon.problems import Problem, traits
from opmon.types import Estimate, Floats
from opmon.wording import counted

METHOD = "census"
LACKING = 0.001
"""So large a share of the inputs may lack a truth: how far they could lead is then told by the bounds."""


def census(losses: Floats, problem: Problem, level: float = 0.95, *, sampled: bool = False) -> Estimate | None:
    """The mean loss over all inputs of a frame, NaN where the truth is not known; None where too many are not.

    The value is that of the inputs whose truth is known, and exact where it is known of all. A share of ``LACKING`` may
    have none: the bounds then count them as wrong and as right, whatever they are, so that the interval holds for
    certain. A squared error that nobody knows can be of any size: of a regression none may lack. The truths are taken
    to be right.

    ``sampled``: the log itself is a simple random sample of the traffic, of which the inputs tell within Wilson's
    interval; squared errors of such a log are left to the estimator of the draw.

    >>> census(np.array([0.0, 0.0, 1.0, 0.0]), "classification").value
    0.75
    >>> census(np.array([0.0, 0.0, 1.0, np.nan]), "classification") is None
    True
    """
    if not len(losses):
        raise InputError("a census needs at least one input")
    known = losses[~np.isnan(losses)]
    lacking = len(losses) - len(known)
    if not is_census(len(losses), lacking, problem) or (sampled and not traits(problem).is_share):
        return None
    mean = float(known.mean())
    notes = ["a census: every input has its truth, which is taken to be right"]
    if not traits(problem).is_share:
        value = low = high = mean
    else:
        wrong = float(known.sum())
        value, low, high = 1 - mean, 1 - (wrong + lacking) / len(losses), 1 - wrong / len(losses)
    if lacking:
        notes = [
            f"a census, but for {counted(lacking, 'input')} of {len(losses):,}: the bounds are for all of them wrong "
            "and all right; the truths are taken to be right"
        ]
    if sampled:
        bounds = wilson(1 - low, len(losses), level), wilson(1 - high, len(losses), level)
        low, high = 1 - bounds[0].high, 1 - bounds[1].low
        notes.append("the log is a sample of the traffic: the interval is for all of it")
    return Estimate(
        value,
        min(low, value),
        max(high, value),
        n=len(losses),
        frame_size=len(losses),
        response=len(known) / len(losses),
        method=METHOD,
        level=level,
        quantity=quantities.of(problem),
        standard_error=float(np.sqrt(value * (1 - value) / len(losses))) if sampled else 0.0,
        notes=tuple(notes),
    )


def is_census(size: int, lacking: int, problem: Problem) -> bool:
    """Whether truths are known of so many inputs that nothing need be estimated."""
    return lacking <= (LACKING * size if traits(problem).is_share else 0)

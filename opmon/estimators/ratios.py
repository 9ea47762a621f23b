"""Figures of a part of the frame: accuracy or mean squared error of a slice or a class, precision, recall."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Ratio
from opmon.errors import InputError
from opmon.estimators._answers import quantity_of
from opmon.estimators._linear import LinearEstimator
from opmon.estimators._parts import part_estimate
from opmon.problems import is_binary
from opmon.quantities import Quantity
from opmon.types import Array, Estimate, Problem, Sample

Members = NDArray[np.bool_]
SHARE: Problem = "classification"


def ratio(
    estimator: LinearEstimator,
    sample: Sample,
    values: NDArray[np.float64],
    members: Members,
    quantity: Quantity,
    level: float = 0.95,
    *,
    problem: Problem | None = None,
    highest: float = math.inf,
) -> Estimate:
    """``R = Σ a_k d_k v_k / Σ a_k d_k``: the mean of ``v`` over the inputs of the frame with ``d = 1``.

    ``a`` are the coefficients of ``estimator`` for the design of ``sample``, ``d`` is ``members``, both one per draw;
    draws without an answer do not count. Variance by linearisation: that of ``Σ a_k d_k (v_k − R)/D̂`` with
    ``D̂ = Σ a_k d_k`` (Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, result 5.6.2). The bias
    is of order 1/n: the slice wants ten answers or so. Weights that differ widely make few effective draws of many:
    without a defensive share the bias was -0.02 at a budget of 400.

    Shares (``problem`` is classification, or None and all values are 0 or 1) get the mid-P interval at the effective
    number of draws, other values, none larger than ``highest``, Hall's joined with Student's: see
    :mod:`._ratios`. A slice that was drawn whole is known exactly. Values of a single answer, or equal ones, have
    no lower bound. Fewer than ten draws are too few to say: a note tells so, and the bounds of a share are the exact
    ones, which hold whatever the truth.

    Measured (``tests/benchmarks/slice_intervals.py``) on slices of 5 to 20 %, right on 60 to 99.9 %, with 10 to 80
    answers: coverage of shares 0.93 to 1.0 under SRS and the adaptive design, 0.96 to 1.0 under SUPS and RHC-S, whose
    intervals are two to four times as wide; of skewed losses 0.91 to 1.0.
    """
    if members.shape != sample.outcomes.shape or values.shape != sample.outcomes.shape:
        raise InputError(
            f"members and values have one entry per draw: {len(sample.draw)}; got {members.shape} and {values.shape}"
        )
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1; got {level}; 0.95 is usual")
    inside = sample.answered & members
    heard = int(inside.sum())
    if not heard:
        raise InputError(f"no answered draw is inside the slice of {quantity.name!r}: draw more, or take a wider slice")
    known = Ratio(values, members.astype(np.float64), -math.inf, highest)
    binary = is_binary(values[inside], problem)
    found = part_estimate(
        estimator, sample, np.where(sample.answered, values, 0.0), inside.astype(np.float64), known, binary, level
    )
    return Estimate(
        value=found.value,
        low=found.low,
        high=found.high,
        n=int(members.sum()),
        frame_size=sample.draw.frame_size,
        response=heard / int(members.sum()),
        method=f"{sample.draw.design}/ratio",
        level=level,
        quantity=quantity,
        standard_error=found.error,
        notes=found.notes,
    )


def slice_accuracy(
    estimator: LinearEstimator, sample: Sample, members: Members, name: str, level: float = 0.95
) -> Estimate:
    """The accuracy of the inputs in a slice of the frame, ``accuracy[name]``; of a regression its squared error."""
    quantity = quantity_of(sample)
    binary = is_binary(sample.outcomes[sample.answered], sample.problem)
    problem: Problem = "classification" if binary else "regression"
    part, right = quantity.of(name), 1 - sample.outcomes
    if quantity.share:
        return ratio(estimator, sample, right, members, part, level, problem=problem, highest=1.0)
    estimate = ratio(estimator, sample, -sample.outcomes, members, part, level, problem=problem, highest=0.0)
    return replace(estimate, value=-estimate.value, low=-estimate.high, high=-estimate.low)


def class_accuracy(
    estimator: LinearEstimator, sample: Sample, classes: Array, level: float = 0.95
) -> dict[Hashable, Estimate]:
    """The accuracy per class of ``classes``, one per draw; classes without an answer are left out."""
    heard = np.unique(classes[sample.answered])
    return {name: slice_accuracy(estimator, sample, classes == name, str(name), level) for name in heard.tolist()}


def precision(
    estimator: LinearEstimator,
    sample: Sample,
    predicted: Array,
    truth: Array,
    positive: object,
    level: float = 0.95,
) -> Estimate:
    """The share of the inputs predicted ``positive`` that are so; both arrays have one entry per draw."""
    return _share(estimator, sample, truth == positive, predicted == positive, f"precision[{positive}]", level)


def recall(
    estimator: LinearEstimator,
    sample: Sample,
    predicted: Array,
    truth: Array,
    positive: object,
    level: float = 0.95,
) -> Estimate:
    """The share of the truly ``positive`` inputs that are predicted so; both arrays have one entry per draw."""
    return _share(estimator, sample, predicted == positive, truth == positive, f"recall[{positive}]", level)


def _share(
    estimator: LinearEstimator, sample: Sample, holds: Members, members: Members, name: str, level: float
) -> Estimate:
    """The share of ``members`` of which something holds."""
    values = holds.astype(np.float64)
    return ratio(estimator, sample, values, members, Quantity(name, share=True), level, problem=SHARE)

"""Figures of a part of the frame: accuracy of a slice or a class, precision, recall."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators.intervals import wilson
from opmon.estimators.linear_core import LinearEstimator
from opmon.estimators.losses_core import freedom_of, hall
from opmon.types import Estimate, Sample

Members = NDArray[np.bool_]


def ratio(
    estimator: LinearEstimator,
    sample: Sample,
    values: NDArray[np.float64],
    members: Members,
    quantity: str,
    level: float = 0.95,
) -> Estimate:
    """``R = Σ a_k d_k v_k / Σ a_k d_k``: the mean of ``v`` over the inputs of the frame with ``d = 1``.

    ``a`` are the coefficients of ``estimator`` for the design of ``sample``, ``d`` is ``members``, both one per draw;
    draws without an answer do not count. Variance by linearisation: that of ``Σ a_k d_k (v_k − R)/D̂`` with
    ``D̂ = Σ a_k d_k`` (Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, result 5.6.2). Values in
    {0, 1} get Wilson's interval at the effective number of draws ``R(1 − R)/V``, or ``(Σa)²/Σa²`` while all values are
    equal; other values Hall's. The bias is of order 1/n: the slice wants ten answers or so.
    """
    if members.shape != sample.outcomes.shape or values.shape != sample.outcomes.shape:
        raise InputError(
            f"members and values have one entry per draw: {len(sample.draw)}; got {members.shape} and {values.shape}"
        )
    inside = sample.answered & members
    heard = int(inside.sum())
    if not heard:
        raise InputError(f"no answered draw is inside the slice of {quantity!r}: draw more, or take a wider slice")
    a = estimator.coefficients(sample) * inside
    v = np.where(inside, values, 0.0)
    R = float(a @ v / a.sum())
    variance = estimator.variance(sample, np.where(inside, v - R, 0.0) / a.sum())
    binary = bool(np.isin(v[inside], (0.0, 1.0)).all())
    if binary:
        kish = float(a.sum() ** 2 / (a @ a))
        n = min(R * (1 - R) / variance, float(heard)) if variance > 0 else kish
        low, high, _ = wilson(R, max(n, 1e-9), level)
    else:
        terms = a[inside] * (v[inside] - R) / a.sum()
        skewness = float((terms**3).sum()) / variance**1.5 if variance > 0 else 0.0
        low, high, _ = hall(R, math.sqrt(variance), skewness, freedom_of(terms), level)
    return Estimate(
        value=R,
        low=min(float(low), R),
        high=max(float(high), R),
        n=int(members.sum()),
        frame_size=sample.draw.frame_size,
        response=heard / int(members.sum()),
        method=f"{sample.draw.design}/ratio",
        level=level,
        quantity=quantity,
        standard_error=math.sqrt(variance),
        notes=() if heard >= 10 else (f"only {heard} answered draws are in this slice",),
    )


def slice_accuracy(
    estimator: LinearEstimator, sample: Sample, members: Members, name: str, level: float = 0.95
) -> Estimate:
    """The accuracy of the inputs in a slice of the frame, ``accuracy[name]``."""
    return ratio(estimator, sample, 1 - sample.outcomes, members, f"accuracy[{name}]", level)


def class_accuracy(
    estimator: LinearEstimator, sample: Sample, classes: NDArray[Any], level: float = 0.95
) -> dict[Any, Estimate]:
    """The accuracy per class of ``classes``, one per draw; classes without an answer are left out."""
    heard = np.unique(classes[sample.answered])
    return {one: slice_accuracy(estimator, sample, classes == one, str(one), level) for one in heard.tolist()}


def precision(
    estimator: LinearEstimator,
    sample: Sample,
    predicted: NDArray[Any],
    truth: NDArray[Any],
    positive: Any,
    level: float = 0.95,
) -> Estimate:
    """The share of the inputs predicted ``positive`` that are so; both arrays have one entry per draw."""
    right = (truth == positive).astype(np.float64)
    return ratio(estimator, sample, right, predicted == positive, f"precision[{positive}]", level)


def recall(
    estimator: LinearEstimator,
    sample: Sample,
    predicted: NDArray[Any],
    truth: NDArray[Any],
    positive: Any,
    level: float = 0.95,
) -> Estimate:
    """The share of the truly ``positive`` inputs that are predicted so; both arrays have one entry per draw."""
    found = (predicted == positive).astype(np.float64)
    return ratio(estimator, sample, found, truth == positive, f"recall[{positive}]", level)

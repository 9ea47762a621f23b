"""The worst case of draws without an answer, whatever the reason that they have none."""

from __future__ import annotations

import numpy as np

from opmon.errors import InputError
from opmon.estimators._linear import LinearEstimator
from opmon.problems import traits
from opmon.types import Sample


def worst_case(estimator: LinearEstimator, sample: Sample) -> tuple[float, float]:
    """The accuracy estimated if all draws without an answer were wrong, and if all were right.

    No weight and no propensity corrects answers that are missing for a reason that the variables do not see; these
    bounds need no such assumption (Manski, American Economic Review 80, 1990). They are those of the estimate, not of
    its interval, and they exist for shares alone: a squared error that nobody knows can be of any size.

    >>> from opmon.estimators import SimpleRandomEstimator
    >>> from opmon.types import Draw
    >>> draw = Draw("srs", 100, np.arange(10), constants={"replacement": np.array(False)})
    >>> answers = np.array([1.0] + 7 * [0.0] + 2 * [np.nan])
    >>> low, high = worst_case(SimpleRandomEstimator(), Sample(draw, answers, "classification"))
    >>> round(low, 2), round(high, 2)
    (0.7, 0.9)
    """
    if sample.problem is not None and not traits(sample.problem).is_share:
        raise InputError("a squared error that nobody knows can be of any size: worst cases are for classifications")
    weight = estimator.coefficients(Sample(sample.draw, np.nan_to_num(sample.outcomes)))
    wrong = float(weight @ np.nan_to_num(sample.outcomes))
    silent = float(weight @ ~sample.answered)
    return min(max(1 - wrong - silent, 0.0), 1.0), min(max(1 - wrong, 0.0), 1.0)

"""Weights of answers that stand for draws without one, by the pattern of response, before any label is looked at.

Inside a stratum the answers are a random sample of the draws, given which draws were answered, while answering has
nothing to do with being wrong. So weights come from the *answered* draws: by the drawn ones a stratum that seldom
answers would count for less than it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.types import Floats, Sample

Counts = NDArray[np.int64]


def carriers(heard: Counts, group: Counts | None = None) -> Counts:
    """The stratum whose answers speak for each stratum: itself, or the nearest of its group that has an answer.

    Strata are in the order of suspicion, so that the nearest is the likest. −1 where no stratum of the group has any.

    >>> carriers(np.array([0, 3, 0, 0, 2])).tolist()
    [1, 1, 1, 4, 4]
    """
    if (heard > 0).all():
        return np.arange(len(heard))
    group = np.zeros(len(heard), dtype=np.int64) if group is None else group
    speaker = np.full(len(heard), -1, dtype=np.int64)
    for one in np.unique(group):
        inside = np.flatnonzero(group == one)
        speaking = inside[heard[inside] > 0]
        if len(speaking):
            speaker[inside] = speaking[np.abs(inside[:, None] - speaking).argmin(axis=1)]
    return speaker


def likelihoods(sample: Sample) -> Floats:
    """The number of draws each answer stands for, up to a factor: ``1/π̂`` with a propensity, else 1; 0 without one."""
    if sample.propensity is None:
        return sample.answered.astype(np.float64)
    return np.asarray(np.where(sample.answered, 1 / sample.propensity, 0.0))


def shares(sample: Sample, stratum: Counts, sizes: NDArray[np.generic], group: Counts | None = None) -> Floats:
    """The part of ``sizes``, one number per stratum, that each answer stands for; 0 for a draw without an answer.

    A stratum's size is divided among the answers there, or in the stratum that speaks for it (:func:`carriers`), in
    proportion to :func:`likelihoods`. Sizes of groups without any answer are lost.
    """
    heard = np.bincount(stratum[sample.answered], minlength=len(sizes))
    carrier = carriers(heard, group)
    spoken = carrier >= 0
    total = np.bincount(carrier[spoken], weights=np.asarray(sizes, dtype=np.float64)[spoken], minlength=len(sizes))
    weight = likelihoods(sample)
    sums = np.bincount(stratum, weights=weight, minlength=len(sizes))
    per_weight = np.divide(total, sums, out=np.zeros(len(sizes)), where=sums > 0)
    return np.asarray(per_weight[stratum] * weight)


def stands_for(sample: Sample, stratum: Counts, group: Counts | None = None) -> Floats:
    """The number of draws of its stratum that each answer stands for: 1 with full response, 0 without an answer."""
    return shares(sample, stratum, np.bincount(stratum), group)

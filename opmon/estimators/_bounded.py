"""The interval of the mean of values that lie between two ends."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from opmon.abc import Ratio
from opmon.estimators._answers import loss_of
from opmon.estimators._known import Known
from opmon.estimators.proxies import fitted, guessed
from opmon.estimators.scores import beside_usual
from opmon.types import Estimate, Floats

FEW = 8
"""Levels of which each may have an interval of its own."""
SEEN, HIDDEN = 10, 2.0
"""Failures that show what failures cost, and those that are joined to fewer."""
DOUBT, STEEP = 1e-6, 4.0
"""The least doubt that is told from less, and a factor of its logit by which the penalty of slopes hardly counts."""


def of_bounded(
    known: Known, losses: Floats, levels: Floats, span: float, estimate: Estimate, level: float
) -> tuple[Estimate, float, float]:
    """The interval of a mean loss between 0 and ``span``, with the estimate that tells how it was made.

    Where losses have ``FEW`` levels ``c_j``, their mean is ``Σ c_j P_j`` with the share ``P_j`` of inputs that have
    each: the distances to the bounds of the shares, times the levels, are added as those of independent ones (Zou and
    Donner, Statistics in Medicine 27, 2008). So a dear mistake that was not seen bounds the mean by what it may cost.
    Others get the interval of unbounded losses, cut at the end; where most losses are equal, so many inputs may lose
    something else as failures may hide among as many draws, each by as much as can be.
    """
    loss, low, high = loss_of(estimate)
    if known.whole:
        return estimate, loss, loss
    if 2 < len(levels) <= FEW:
        return _of_levels(known, losses, levels, estimate, level)
    least, most = beside_usual(known.estimator, known.answering(losses, "regression"), span, level)
    if math.isinf(high) and math.isfinite(most):
        estimate = replace(estimate, notes=())
    return estimate, min(max(low, least), loss), max(min(high, most, span), loss)


def of_atom(
    known: Known, losses: Floats, span: float, estimate: Estimate, level: float
) -> tuple[Estimate, float, float]:
    """The interval of a mean loss of which a part are ``span``, far above the others, as the sum of two means: that of
    the others, and ``span`` times the share of these, which bounds it also where none was drawn."""
    if known.whole:
        loss = loss_of(estimate)[0]
        return estimate, loss, loss
    largest = losses >= span * (1 - 1e-9)
    rest = loss_of(known.estimator.estimate(known.answering(np.where(largest, 0.0, losses), "regression"), level))
    rare = loss_of(_share(known, largest.astype(np.float64), level))
    loss = rest[0] + span * rare[0]
    below, above = (math.hypot(rest[0] - rest[side], span * (rare[0] - rare[side])) for side in (1, 2))
    design = estimate.method.partition("/")[0]
    return replace(estimate, method=f"{design}/hall and share"), loss - below, min(loss + above, span)


def above_failures(known: Known, losses: Floats, ratio: Ratio, loss: float, level: float) -> float:
    """An upper bound of a mean loss that comes from failures of which few, or none of the dearest, were drawn.

    It is the sum of the bound of the losses of right answers, and of the larger of two bounds of those of failures:

    - Where fewer than ``SEEN`` were drawn, the upper bound of their share times the mean loss of those seen, joined
      with ``HIDDEN`` more that cost as much as a failure on the draws would on average. Without it the coverage of
      Brier scores was 0.82 to 0.91 with 100 labels of a model right on 99.7 %.
    - What failures spread by where each draw fails as often as those of as much doubt do, by a logistic regression on
      the logit of the model's own doubt: a design that drew 24 failures where doubt is large, and none among many
      inputs of little doubt and a large weight, would else take the dearest not to exist. Without it the coverage of
      the log loss of rare fraud was 0.88 under ``adaptive`` with 800 labels.
    """
    failed, feared = ratio.failed, ratio.feared
    if known.whole or failed is None or feared is None:
        return loss
    rest = loss_of(known.estimator.estimate(known.answering(np.where(failed, 0.0, losses), "regression"), level))
    count, reach = int(failed.sum()), 0.0
    if count < SEEN:
        share = loss_of(_share(known, failed.astype(np.float64), level))
        each = (float(losses[failed].sum()) + HIDDEN * float(known.weights @ feared)) / (count + HIDDEN)
        reach = share[2] * each - (loss - rest[0])
    if count and ratio.doubt is not None:
        added = np.where(failed, losses, feared - losses)
        reach = max(reach, float(ndtri(0.5 + level / 2)) * _of_failures(known, failed, ratio.doubt, added))
    if reach <= 0 and count >= SEEN:
        return loss
    return loss + math.hypot(rest[2] - rest[0] if math.isfinite(rest[2]) else 0.0, max(reach, 0.0))


def _of_failures(known: Known, failed: NDArray[np.bool_], doubt: Floats, added: Floats) -> float:
    """The standard error of the mean of what failures add, by how likely each draw is one of them."""
    likely = np.clip(doubt, DOUBT, 1 - DOUBT)
    design = np.column_stack((np.ones(len(likely)), STEEP * np.log(likely / (1 - likely))))
    chance = guessed(design, fitted(design, failed.astype(np.float64), binary=True), binary=True)
    _, left = known.cells
    return math.sqrt(float((known.weights**2 * left) @ (chance * (1 - chance) * added**2)))


def _of_levels(
    known: Known, losses: Floats, levels: Floats, estimate: Estimate, level: float
) -> tuple[Estimate, float, float]:
    loss, below, above = loss_of(estimate)[0], 0.0, 0.0
    for one in levels[levels > 0]:
        share, low, high = loss_of(_share(known, np.isclose(losses, one).astype(np.float64), level))
        below += (one * (share - low)) ** 2
        above += (one * (high - share)) ** 2
    design = estimate.method.partition("/")[0]
    return replace(estimate, method=f"{design}/levels", notes=()), loss - math.sqrt(below), loss + math.sqrt(above)


def _share(known: Known, failures: Floats, level: float) -> Estimate:
    return known.estimator.estimate(known.answering(failures, "classification"), level)

"""What each draw falls short of the best that its prediction allows: a loss, whose line follows from the frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator, Measure, Ratio
from opmon.decisions._betting import BETS, HIGHEST, bets_on
from opmon.decisions.draw_values import terms
from opmon.errors import PluginError
from opmon.types import Draw, Floats, Labelled, Sample
from opmon.types.draw import PREDICTED, PREDICTED_COUNT

Usable = NDArray[np.bool_]
Surplus = Callable[[Ratio], Floats]
"""How far each row is on the worse side of the line: ``t d − n`` where higher is better, else ``n − t d``."""


ALIKE = 1.1
"""Up to this weight of its heaviest draw a design counts as one of equal weights."""
HALF = 0.5


@dataclass(frozen=True, eq=False)
class Shortfall:
    r"""The losses :math:`y = s - b\,l(c)` of the draws, and the line :math:`m` that their mean keeps to.

    :math:`s` is the surplus over the line of the measure, and :math:`l(c) \le 0` the least that it can be for an input
    predicted as :math:`c`: for a recall :math:`t - 1` of the class itself and 0 of all others.

    The measure is at least as good as its line if and only if :math:`\sum s \le 0` over the frame, which is
    :math:`\bar y \le m = -b \sum_c (N_c/N)\,l(c)`, where the numbers :math:`N_c` of inputs predicted as :math:`c` are
    known before the draw. Bets of :math:`\lambda c_j < 1/m`, chosen before the labels, on the draws' values :math:`v_j`
    of :math:`y` therefore multiply to a supermartingale by what :class:`.draw_values.DrawValues` proves for any loss:
    with :math:`b = 1` no loss and no value is below 0, so no weight of the design, however large, limits them.

    Draws of equal weights are limited little by what lies below 0, and have less noise with :math:`b = 1/2`: the limit
    is then :math:`1/(m + r \max |l|/2)` with the reach :math:`r` of the design.
    """

    losses: Floats
    """``y`` of each draw for ``b = 1``; 0 for a draw that is not usable."""
    allowed: Floats
    """``l`` of each draw; 0 likewise."""
    line: float
    """``m`` for ``b = 1``."""
    least: Floats
    """``l`` of each class."""
    most: Floats
    """The largest ``s`` of each class."""

    def growth(self, sample: Sample, usable: Usable, design: Estimator | None) -> Floats:
        """What the usable draws add to the evidence against the line, for every bet."""
        heaviest = float(terms(sample, np.zeros(len(usable)), design).bound[usable].max())
        share = HALF if heaviest <= ALIKE else 1.0
        losses, line = self.losses + (1 - share) * self.allowed, share * self.line
        largest = float((self.most - share * self.least).max())
        bettable = terms(sample, losses, design)
        values, staked = bettable.of(losses)[usable] - line, bettable.stakes[usable]
        reach = line + (1 - share) * -float(self.least.min()) * bettable.reach[usable]
        bets = bets_on(float(reach.max()), largest) if np.isfinite(largest) else BETS
        return np.asarray(np.log1p(np.minimum(bets[:, None] * staked, HIGHEST) / reach * values).sum(axis=1))


def shortfall_of_mean(ratio: Ratio, usable: Usable, of: Surplus, below: float, above: float) -> Shortfall:
    r"""The shortfall of a mean over all inputs of which nobody knows what predictions allow, such as a MAE.

    Its surplus is never below :math:`-b`, with the distance :math:`b` of the line from the best that an input may be:
    for a MAE of at most :math:`t` that is :math:`e - t \ge -t`. So all inputs are as of one class with
    :math:`l = -b`, whatever their truth: :math:`y = s + b \ge 0`, and :math:`\sum s \le 0` over the frame if and only
    if :math:`ar y \le b = m`. No number of predictions is needed, and the errors may have any size: what
    :class:`Shortfall` says of its bets asks for losses of at least 0 alone. ``above`` is the largest surplus, infinite
    where there is none.
    """
    losses, allowed = np.zeros(len(usable)), np.zeros(len(usable))
    losses[usable], allowed[usable] = np.maximum(of(ratio) + below, 0.0), -below
    return Shortfall(losses, allowed, below, np.array([-below]), np.array([above]))


def shortfall(measure: Measure, rows: Labelled, draw: Draw, usable: Usable, of: Surplus) -> Shortfall | None:
    """The shortfall of the usable rows; None where it is not known what the frame's predictions allow."""
    if PREDICTED not in draw.constants or rows.predicted.ndim > 1:
        return None
    names, counts = draw.constants[PREDICTED], np.asarray(draw.constants[PREDICTED_COUNT], dtype=np.float64)
    if counts.sum() != draw.frame_size or not np.isin(rows.predicted[usable], names).all():
        return None
    every = measure.possible(Labelled(np.ones(len(names), dtype=np.bool_), names, names, None, rows.classes))
    ratio = measure.ratio(rows.only(usable))
    if not every or ratio is None:
        return None
    table = np.stack([of(each) for each in every])
    least, most = np.minimum(table.min(axis=0), 0.0), table.max(axis=0)
    order = np.argsort(names)
    place = order[np.searchsorted(names, rows.predicted[usable], sorter=order)]
    surplus, slack = of(ratio), 1e-9 * max(float(np.abs(table).max()), 1.0)
    if (surplus < least[place] - slack).any() or (surplus > most[place] + slack).any():
        raise PluginError(f"possible() of {type(measure).__name__} leaves out a value that its ratio() has")
    losses, allowed = np.zeros(len(usable)), np.zeros(len(usable))
    losses[usable], allowed[usable] = np.maximum(surplus - least[place], 0.0), least[place]
    line = max(-float(counts @ least), float((most - least).max())) / draw.frame_size
    return Shortfall(losses, allowed, line, least, most)


def standing_for(sample: Sample, predicted: NDArray[np.generic], usable: Usable) -> Sample | None:
    """The sample whose usable draws stand for all that are predicted alike; None where none stands for some of them.

    The line counts the predictions of the whole frame. Were those of one class answered less often, the answers would
    have another mix, and be held against a line that is not theirs.
    """
    if usable.all():
        return sample
    _, of = np.unique(predicted, return_inverse=True)
    likely = np.ones(len(usable)) if sample.propensity is None else sample.propensity
    stands = np.bincount(of, np.where(usable, 1 / likely, 0.0))
    if not (stands > 0).all():
        return None
    return replace(sample, propensity=likely * (stands / np.bincount(of))[of])

"""The contract of estimators, which turn the labels of a draw into an estimate for all inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc.plugin import Plugin
from opmon.bets import Terms
from opmon.types import Estimate, Sample

if TYPE_CHECKING:
    from opmon.estimators.tally import Tally


class Estimator(Plugin, ABC):
    """Turns the outcomes of one design's draws into an estimate with an interval. Pure."""

    @abstractmethod
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        """The estimate from the answered draws, with a two-sided interval of ``level``."""

    def coefficients(self, sample: Sample) -> NDArray[np.float64] | None:
        """``a_k`` of the mean loss ``Σ a_k y_k``, decided by design and response alone, 0 for a draw without an answer;
        None where the estimate is no such sum. Slices, ratios and paired comparisons need it."""
        return None

    def tally(self, sample: Sample) -> Tally | None:
        """The tally of the draws, from which several rounds make one interval; None where the design does not tell:
        rolling estimates then join the rounds' intervals, which are wider."""
        return None

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float | None:
        """The estimated variance of ``Σ a_k values_k``; None where the design does not tell."""
        return None

    @classmethod
    def tells_parts(cls) -> bool:
        """Whether further measures and slices can be estimated from its draws: it tells :meth:`coefficients` and
        :meth:`variance`. Where it does not, they are refused when the configuration is read. A design whose methods
        give None after all overrides this."""
        return cls.coefficients is not Estimator.coefficients and cls.variance is not Estimator.variance

    def cells(self, sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The cell of each draw inside which draws may stand for one another, and what is left of the variance there:
        1 with replacement, ``1 − n/N`` without. A bootstrap resamples cell by cell; the default is a single one."""
        count = len(sample.draw)
        return np.zeros(count, dtype=np.int64), np.ones(count)

    assisted: ClassVar[bool] = False
    """Whether a proxy may assist its estimates: it tells :meth:`coefficients` and :meth:`variance`, and its draws do
    not follow a variable already."""

    bets: ClassVar[bool] = False
    """Whether :meth:`terms` tells something, so that rules may bet on the design's draws."""

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms | None:
        """Each draw as an estimate of the mean of ``losses`` on its own, given which of the draws have an answer; None
        where that is not known: rules that bet on draws are then refused when the configuration is read.

        :class:`opmon.decisions.draw_values.DrawValues` says what must hold of them.
        """
        return None

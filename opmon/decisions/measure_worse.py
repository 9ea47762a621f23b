"""The plain rule on any measure: is it worse than a line?"""

from __future__ import annotations

from dataclasses import dataclass

from opmon.decisions._judging import checked_name
from opmon.decisions._line import OnLine


@dataclass(frozen=True)
class MeasureWorse(OnLine):
    r"""Alarms when a measure was worse than ``threshold`` in ``patience`` rounds running.

    Which way is worse says the measure: below the line where higher is better (recall, R²), above it where lower is
    better (MAE, a cost), farther from 0 than the line for a bias. The threshold has the measure's own unit: 0.7 is 70 %
    recall, 3.5 are 3.5 days.

    With ``certainty="interval"`` a round counts when its whole interval lies on the worse side, with ``"estimate"``
    when the estimate itself does.

    **False alarms.** As ``accuracy_below`` this rule repeats a decision of fixed level every round, and holds no bound
    over its life: a model exactly at the line is called worse in a round with probability :math:`(1-c)/2` at most,
    where its interval of level :math:`c` covers, and in a year of many rounds nearly surely; ``patience: 3`` makes that
    rare. Intervals of measures other than shares and means are asymptotic: they cover where enough answers count.
    ``measure_level`` keeps a bound for life, of measures that are ratios.

    >>> from opmon.quantities import MAE
    >>> from opmon.types import Estimate
    >>> far = Estimate(4.1, 3.6, 4.8, n=200, frame_size=5000, response=1.0, method="srs", quantity=MAE)
    >>> MeasureWorse(threshold=3.5).decide([far]).state
    'alarm'
    """

    threshold: float
    """The line, in the unit of the measure."""
    name: str = "measure-worse"
    of: str | None = None
    """The measure, by its name in `measures`, such as recall; none: the main one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of is not None:
            checked_name(self.of)

    def watches(self) -> str | None:
        return self.of

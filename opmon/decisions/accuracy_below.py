"""The plain level rule: is the accuracy under a line?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from opmon.abc import USUAL
from opmon.decisions._line import OnLine
from opmon.errors import InputError
from opmon.problems import SHARES
from opmon.types import Problem


@dataclass(frozen=True)
class AccuracyBelow(OnLine):
    r"""Alarms when the accuracy of ``patience`` rounds running lies under ``threshold``.

    With ``certainty="interval"`` a round counts when the upper end of its interval lies under the line,
    :math:`\hat\xi_{high} < t`; with ``"estimate"`` when the estimate itself does, :math:`\hat\xi < t`.

    The estimate is the plain one, not the one corrected for annotators who err that may stand beside it: a rule must
    not change what it means with the round in which enough second opinions have come in.

    **False alarms.** This rule repeats a fixed-level decision every round and holds no bound over its life. For
    independent rounds of a model whose accuracy is exactly at the line, a two-sided interval of level :math:`c` lies
    under it with probability :math:`q = (1-c)/2` at most (where the interval covers). The probability of any false
    alarm in :math:`R` rounds is then :math:`1-(1-q)^R` for patience 1 and at most :math:`(R-k+1)\,q^k` for patience
    :math:`k`. Computed exactly at :math:`c = 0.95`:

    ============  ======  =======  =================
    patience        R=24    R=168    R=8760 (hourly,
                   1 day   1 week    a year)
    ============  ======  =======  =================
    1               0.46     0.99                  1
    2              0.014      0.1              0.995
    3             0.0003   0.0026               0.12
    ============  ======  =======  =================

    A model well above the line alarms far less often: the line of the table is the worst case of a healthy one. With
    ``certainty="estimate"`` :math:`q` is about one half: only for accuracies known almost exactly. An alarm ends with
    ``recovery`` rounds running that do not count, which is no evidence that the model has recovered.

    >>> from opmon.types import Estimate
    >>> low = Estimate(value=0.85, low=0.80, high=0.90, n=200, frame_size=5000, response=1.0, method="srs wilson")
    >>> AccuracyBelow(threshold=0.92).decide([low]).state
    'alarm'
    """

    threshold: float
    """The accuracy below which it alarms."""
    name: str = "accuracy-below"

    problems: ClassVar[tuple[Problem, ...]] = SHARES

    def __post_init__(self) -> None:
        number = isinstance(self.threshold, int | float) and not isinstance(self.threshold, bool)
        if number and not -math.inf < self.threshold <= 1:
            hint = f" (did you mean {self.threshold / 100:g}?)" if 1 < self.threshold <= 100 else ""
            raise InputError(f"threshold must be a number of at most 1, as the accuracy is; got {self.threshold}{hint}")
        super().__post_init__()

    def watches(self) -> str:
        return USUAL

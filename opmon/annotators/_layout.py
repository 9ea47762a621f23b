"""The parameters of the error model: where each is, what is supposed of it before anything is seen, and its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from opmon.types import Floats

ERROR = (math.log(0.03 / 0.97), 1.6)
"""Centre and spread of the team's log odds of an error before anything is seen: 0.1 to 42 %."""
HARDER = (0.3, 0.6)
"""How much larger the log odds are on inputs that the model gets wrong, before anything is seen."""
APART = 0.8
"""How far the log odds of annotators are spread around the team's."""

ALTERNATIVES = (0.7, 0.35)
"""Centre and spread of ``log M``, in parts of ``log(K − 1)``: of ten classes about five are confused, from one to all
nine."""


@dataclass(frozen=True)
class Layout:
    """One log odds of failure per group of inputs, then ``β``, ``δ``, ``log M`` (with more than two classes), and
    ``τ_a`` per annotator (with more than one)."""

    groups: int
    annotators: int
    classes: int

    @property
    def error(self) -> int:
        """Where ``β`` is, the team's log odds of an error."""
        return self.groups

    @property
    def harder(self) -> int:
        """Where ``δ`` is, what they are larger by where the model is wrong."""
        return self.groups + 1

    @property
    def many(self) -> bool:
        """Whether there are more than two classes, and so a ``log M`` behind ``δ``."""
        return self.classes > 2

    @property
    def apart(self) -> slice:
        """Where the ``τ_a`` are."""
        return slice(self.groups + 2 + self.many, self.size)

    @property
    def size(self) -> int:
        return self.groups + 2 + self.many + (self.annotators if self.annotators > 1 else 0)

    @property
    def centre(self) -> Floats:
        """What is supposed of every parameter."""
        centre = np.zeros(self.size)
        centre[self.error], centre[self.harder] = ERROR[0], HARDER[0]
        if self.many:
            centre[self.harder + 1] = ALTERNATIVES[0] * math.log(self.classes - 1)
        return centre

    @property
    def precision(self) -> Floats:
        """``1/spread²`` of what is supposed; 0 for the failure rates, of which nothing is."""
        precision = np.zeros(self.size)
        precision[self.error], precision[self.harder] = ERROR[1] ** -2, HARDER[1] ** -2
        if self.many:
            precision[self.harder + 1] = (ALTERNATIVES[1] * math.log(self.classes - 1)) ** -2
        precision[self.apart] = APART**-2
        return precision

    @property
    def limits(self) -> list[tuple[float, float]]:
        """The least and the largest value of each parameter.

        A team errs on less than 40 %, and a model fails on less than 88 %, of two classes on less than half: with
        everybody wrong together the answers would be as likely, and no data could tell the two worlds apart.
        """
        limits = [(-9.0, 2.0 if self.many else 0.0)] * self.groups + [(-7.0, -0.4), (-1.5, 1.5)]
        if self.many:
            limits.append((0.0, math.log(self.classes - 1)))
        return limits + [(-2.5, 2.5)] * (self.apart.stop - self.apart.start)

    def alternatives(self, parameters: Floats) -> float:
        """``M``."""
        return float(np.exp(parameters[self.harder + 1])) if self.many else 1.0

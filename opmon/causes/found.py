"""Groups of failures, as they were found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.causes.contrasts import Members
from opmon.causes.onsets import Onset
from opmon.causes.shifts import Shift

Kind = Literal["condition", "confusion", "rest"]


@dataclass(frozen=True, eq=False)
class Found:
    """A group of failures."""

    kind: Kind
    words: tuple[str, ...]
    """What they have in common; empty of the rest, and where it is only since when."""
    failures: Members
    """Which of the inputs are its failures: each failure is in one group."""
    members: Members
    """All inputs that have it in common, those also on which the model is right."""
    p: float | None = None
    """How probable so strong a contrast would be by chance, corrected for all conditions looked at."""
    lift: float | None = None
    """How many times as often the model fails there as on the inputs that no cause holds for."""
    lift_at_least: float | None = None
    """The lower bound of that, as far as it bears the search."""
    since: float | None = None
    """The moment since when there are more of them; None where there were as many before."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """All groups of some failures; the largest come first, and what has nothing in common last."""

    groups: tuple[Found, ...]
    conditions: int
    """So many conditions were looked at."""
    onset: Onset | None = None
    """Since when failures are more frequent, where that is sure."""
    shift: Shift | None = None
    """What the inputs since then differ in most from those before."""

    def labels(self) -> NDArray[np.int64]:
        """The number of each input's group, -1 for those that are no failures."""
        if not self.groups:
            return np.zeros(0, np.int64)
        found = np.full(len(self.groups[0].failures), -1)
        for number, group in enumerate(self.groups):
            found[group.failures] = number
        return found

"""One step of a sequential rule: from this round's draws to the evidence so far, and to a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.decisions._betting import log_growth
from opmon.decisions._bound import Bound
from opmon.decisions._watch import Watch, recovery_growth
from opmon.decisions._words import labels_to_go, share_of_line
from opmon.decisions.draw_values import DrawValues
from opmon.types import VerdictState

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """What one round did to the evidence."""

    watch: Watch
    was_alarmed: bool
    labels: int
    best: float
    """How much the round multiplied the strongest stake by, as a logarithm."""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> VerdictState:
        return "alarm" if self.watch.alarmed else "ok"

    def words(self, hypothesis: str, patience: float) -> str:
        """The evidence, how far it is from the line, and what would change it."""
        if self.watch.alarmed and not self.was_alarmed:
            return f"the evidence against {hypothesis} is {share_of_line(self.watch.evidence)}: alarm"
        if self.watch.alarmed:
            return (
                f"the alarm of an earlier round holds: evidence of recovery {self.watch.recovery:.2g} of the "
                f"{patience:g} that ending it takes; rounds on the good side of the line raise it"
            )
        if self.was_alarmed:
            return f"recovered: the rounds since the alarm are {hypothesis}; the watch begins anew"
        text = f"the evidence against {hypothesis} is {share_of_line(self.watch.evidence)}"
        more = labels_to_go(self.watch.evidence, self.best, self.labels)
        if more is None:
            return f"{text}; rounds like this one do not raise it"
        return f"{text}; about {more:,} more labels like these would make an alarm, good ones lower it"


def step(
    drawn: DrawValues,
    line: float,
    before: Mapping[str, Any],
    setting: Mapping[str, Any],
    bound: Bound,
    elapsed: timedelta | None,
    patience: float,
) -> Step:
    """Judge one round on the level ``line`` of the mean loss."""
    growth = log_growth(drawn, line)
    return advance(growth, drawn.values - line, drawn.stakes, before, setting, bound, elapsed, patience)


def advance(
    growth: Floats,
    surplus: Floats,
    stakes: Floats,
    before: Mapping[str, Any],
    setting: Mapping[str, Any],
    bound: Bound,
    elapsed: timedelta | None,
    patience: float,
) -> Step:
    """Judge one round by the growth of every bet; ``surplus`` are the draws' values above the line."""
    known = Watch.of(before, setting)
    weight = bound.weight(known.judged, elapsed)
    now = known.after(growth, weight, recovery_growth(surplus, stakes), patience)
    strongest = int(np.argmax(now.capital if now.evidence > 0 else growth))
    details = {
        "evidence": now.evidence,
        "needed": 1.0,
        "bound": bound.words(elapsed),
        "rounds_judged": now.judged,
        "setting": dict(setting),
        "watch": now.kept(),
    }
    return Step(now, known.alarmed, len(surplus), float(growth[strongest]), details)

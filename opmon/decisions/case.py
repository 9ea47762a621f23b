"""The facts of a round that a rule is shown, and nothing else: a rule reads no database and no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator, Measure
from opmon.types import Document, Estimate, Json, Labelled, Sample
from opmon.types.slicing import DrawnCut

OWN = "round"
"""The key under which the details of a verdict keep the round's own evidence, apart from the rounds before it."""


def carried(before: Document) -> dict[str, Json]:
    """The details for a round that tells nothing: those before it, for the next one."""
    return {key: value for key, value in before.items() if key != OWN}


@dataclass(frozen=True, eq=False)
class Case:
    """One round of one model version, as it is judged.

    Rounds are judged in their order, whatever the order in which their labels come in: one whose labels are complete
    waits for those before it. A label that comes after that replaces what its round adds to the evidence, as long as
    the rule has not alarmed or recovered since; that it has is a fact which no late label takes back.
    """

    number: int
    estimates: Sequence[Estimate]
    """The final estimates of this model version up to this round, oldest first; the last is this round's.

    As many as the rule looks back (:meth:`opmon.abc.Rule.looks_back`)."""
    sample: Sample | None = None
    """This round's draws with their outcomes."""
    design: Estimator | None = None
    """The estimator of their design, which tells what bets can be made on them."""
    before: Document = field(default_factory=dict)
    """The details of this rule's verdict on the round before, of the same model version; empty at first."""
    elapsed: timedelta | None = None
    """The production time since the round judged before: what a yearly rate is counted in."""
    classes: NDArray[np.str_] | None = None
    """The predicted class of every draw."""
    class_names: Sequence[str] = ()
    """All classes of the model."""
    variables: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """The auxiliary variables of every draw."""
    cuts: Sequence[DrawnCut] = ()
    """The slices that the configuration divides the inputs into, and which draws lie in them."""
    rival: NDArray[np.float64] | None = None
    """The outcome of every draw under another model version, for rules that compare; NaN without an answer."""
    asked: int = 0
    """The inputs that were sent to annotators, and how many of them came back with an answer."""
    answered: int = 0
    received: int = 0
    """The inputs that production sent, and how many of them the model could answer."""
    scored: int = 0
    drift: float | None = None
    """The share of columns that drifted."""
    robustness: float | None = None
    """The robustness that the rule watches, as measured last."""

    numbers: Sequence[int] = ()
    """The numbers of the rounds that ``estimates`` belong to."""
    why: str = ""
    """Why there is no estimate of what the rule watches; empty where there is one."""
    measure: Measure | None = None
    """What the rule watches, for rules that bet on it as a ratio."""
    rows: Labelled | None = None
    """What is known of every draw, for the same rules."""

    @property
    def estimate(self) -> Estimate | None:
        return self.estimates[-1] if self.estimates else None

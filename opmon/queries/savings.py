"""The labels that rounds took, and those that simple random sampling would have needed for intervals as narrow."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opmon.estimators.plain_labels import plain_labels
from opmon.estimators.tally import Tally
from opmon.queries.planning import Known
from opmon.queries.rounds import RoundView
from opmon.samplers.planning import plan
from opmon.types import Estimate

HOW = (
    "For each round, the number of labels is sought at which the interval of a simple random sample, at the value "
    "found and among as many inputs, is expected to be as narrow as the round's own interval. Of a share of all "
    "inputs, such as accuracy, that is Wilson's interval; of recall and the like, and of errors, it goes by how much "
    "inputs differ, as the round's own labels tell. opmon plan computes it the same way. Inputs that annotators "
    "skipped count on both sides. For one round this is rough; over many it evens out."
)
"""How the comparison is made."""


@dataclass(frozen=True)
class LabelsView:
    """What some rounds cost."""

    spent: int
    """The inputs that were labelled, each counted once however many people spoke of it."""
    gold: int
    """Labelled inputs of known truth, which are in no other count."""
    rounds: int
    """The rounds that are compared; 0 where none can be."""
    taken: int
    """The labels that those took."""
    plain: int
    """The labels that simple random sampling would have needed for them."""
    left_out: Mapping[str, int]
    """Why rounds are not compared, and how many each."""
    how: str = HOW

    @property
    def saved(self) -> int:
        """How many fewer they took; below 0 where they took more."""
        return self.plain - self.taken


def labels_of(views: Sequence[RoundView], gold: int, known: Known, tallies: Mapping[int, Tally]) -> LabelsView:
    """What the rounds of a monitor cost, and what simple random sampling would have; ``known`` says what they ask.

    ``tallies`` are what the draws of rounds tell, by the round's number, where :func:`goes_by_tallies`.
    """
    left_out, taken, plain = Counter[str](), 0, 0
    for view in views:
        why = _why_not(view, known)
        needed = (
            None
            if why or view.estimate is None
            else _plain(view.estimate, view.spoken, known, tallies.get(view.number))
        )
        if needed is None:
            left_out[why or f"the labels do not tell how much inputs differ in {known.quantity.name}"] += 1
            continue
        taken += view.spoken
        plain += needed
    compared = len(views) - left_out.total()
    return LabelsView(sum(view.spoken for view in views), gold, compared, taken, plain, dict(left_out))


def _why_not(view: RoundView, known: Known) -> str:
    """Why a round cannot be compared; empty where it can."""
    estimate = view.estimate
    if estimate is None or estimate.provisional:
        return "the estimate is not final yet"
    if estimate.quantity != known.quantity:
        return "another quantity was estimated than is now"
    if not 0 < estimate.half_width < math.inf or estimate.method == "census":
        return "every input is known, or the interval has no end"
    return "" if view.spoken else "nothing was labelled"


def goes_by_tallies(known: Known) -> bool:
    """Whether what simple random sampling needs is told by the draws, and not by the value alone as of a share."""
    by_value = known.is_share_of_inputs and not known.quantity.decimal
    return not by_value or (known.main is not None and not known.of_all)


def _plain(estimate: Estimate, spoken: int, known: Known, tally: Tally | None) -> int | None:
    """The labels of a simple random sample, with as large a share of skipped ones; None where that is not known."""
    if estimate.method.startswith("srs") and not estimate.method.endswith("model-assisted"):
        return spoken  # it is one
    size, level = estimate.frame_size, estimate.level
    if goes_by_tallies(known):
        told = None if tally is None else plain_labels(tally, _half_width(estimate), size, level)
        if told is None:
            return None
        answers = told
    else:
        value = min(max(estimate.value, 0.0), 1.0)
        answers = plan(estimate.half_width, size, accuracy=value, variables=0, level=level).plain_budget
    answered = min(estimate.answers / spoken, 1.0)
    return min(math.ceil(answers / answered - 1e-9), estimate.frame_size) if answered > 0 else answers


def _half_width(estimate: Estimate) -> float:
    """The half-width of the mean that a tally is of: for a RMSE that of the mean squared error."""
    if not estimate.quantity.of_squares:
        return estimate.half_width
    return (estimate.high**2 - max(estimate.low, 0.0) ** 2) / 2

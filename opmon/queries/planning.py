"""What is known of a monitor before its labels are planned, from its newest rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opmon.errors import InputError
from opmon.estimators.ratio_planning import plan_ratio
from opmon.estimators.tally import Tally
from opmon.problems import traits
from opmon.quantities import ACCURACY, Problem, Quantity
from opmon.samplers.planning import Plan, Shown, plan
from opmon.samplers.widths import gain_of, spread_of, telling_of
from opmon.store import revisions, tallies
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.types import Estimate

ROUNDS = 10
"""Rounds that tell how wide the intervals of the monitor's sampler are."""


@dataclass(frozen=True)
class Known:
    """What a plan of labels starts from."""

    quantity: Quantity = ACCURACY
    problem: Problem = "classification"
    level: float = 0.95
    variables: Sequence[str] = ("confidence",)
    aim: float = 0.5
    inputs: int | None = None
    """Inputs of the newest round."""
    expected: float | None = None
    """The newest estimate."""
    gain: float | None = None
    telling: float | None = None
    spread: float | None = None
    main: str | None = None
    """The main measure, where it is not the usual one of the problem."""
    of_all: bool = False
    """Whether the main measure is a mean over all inputs: what is said of an accuracy holds of such a share."""
    tally: Tally | None = None
    """What the newest round tells of a main measure that is a ratio, such as recall."""
    labels: int = 0
    """The draws of that round."""
    shown: Shown | None = None
    """How wide the newest round's interval of the main measure was, beside simple random sampling."""
    aims: bool = True
    """Whether a sampler can aim at the main measure."""

    @property
    def planned_as(self) -> Problem:
        """Whose intervals are planned for: those of shares are alike, whatever they are shares of."""
        if not self.quantity.share:
            return "regression"
        return "classification" if traits(self.problem).of_numbers else self.problem


def learned(connection: Connection, monitor: str, known: Known) -> Known:
    """What is configured, with what the newest rounds of the monitor tell."""
    latest = revisions.newest_final(connection, monitor)
    if latest is None or latest.estimate.quantity != known.quantity:
        return known
    lately = revisions.latest_estimates(connection, monitor, limit=ROUNDS)
    estimates = [revision.estimate for revision in lately]
    numbers = traits(known.problem).of_numbers or not known.quantity.share
    main = known.main is not None
    tally = _tally(connection, latest) if main else None
    return replace(
        known,
        inputs=latest.estimate.frame_size,
        expected=latest.estimate.value,
        gain=gain_of(estimates),
        telling=telling_of(estimates, known.aim),
        spread=spread_of(latest.estimate, known.aim) if numbers else None,
        tally=tally if tally is not None and tally.is_ratio else None,
        labels=latest.estimate.n,
        shown=None if tally is None else _shown(latest.estimate, tally.gain),
    )


def _tally(connection: Connection, latest: Revision) -> Tally | None:
    return tallies.read(connection, [latest.key]).get(latest.key)


def _shown(estimate: Estimate, gain: float) -> Shown | None:
    labels = round(estimate.n * estimate.response)
    wide = 0 < estimate.half_width < math.inf
    if not (math.isfinite(gain) and wide and 0 < labels < estimate.frame_size):
        return None
    return Shown(estimate.half_width, labels, estimate.frame_size, gain)


def budget_for(known: Known, half_width: float, size: int, expected: float | None, aim: float) -> Plan:
    """The labels that the main measure needs: by the draws of the newest round where it is a ratio, such as recall."""
    if known.tally is not None:
        found = plan_ratio(known.tally, half_width, known.labels, size, known.level)
        whole = ("only labelling the whole frame is enough",) if found.budget == size else ()
        return Plan(found.budget, found.half_width, found.plain_budget, None, whole)
    if known.shown is not None:
        return known.shown.plan(half_width, size)
    if known.main is not None and known.quantity.share and not known.of_all:
        raise InputError(
            f"the labels that {known.quantity.name} needs depend on how rare its inputs are and how well scores tell "
            "them apart: let the sampler adaptive draw one round, have it labelled, and ask again"
        )
    return plan(
        half_width,
        size,
        problem=known.planned_as,
        accuracy=expected if known.quantity.share else None,
        spread=known.spread,
        variables=len(known.variables),
        level=known.level,
        aim=aim,
        telling=known.telling,
    )

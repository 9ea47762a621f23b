"""What is known of a monitor before its labels are planned, from its newest rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opmon.problems import traits
from opmon.quantities import ACCURACY, Problem, Quantity
from opmon.samplers.widths import gain_of, spread_of, telling_of
from opmon.store import revisions
from opmon.store.engine import Connection

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


def learned(connection: Connection, monitor: str, known: Known) -> Known:
    """What is configured, with what the newest rounds of the monitor tell."""
    latest = revisions.newest_final(connection, monitor)
    if latest is None or latest.estimate.quantity != known.quantity:
        return known
    lately = revisions.latest_estimates(connection, monitor, limit=ROUNDS)
    estimates = [revision.estimate for revision in lately]
    return replace(
        known,
        inputs=latest.estimate.frame_size,
        expected=latest.estimate.value,
        gain=gain_of(estimates),
        telling=telling_of(estimates, known.aim),
        spread=spread_of(latest.estimate, known.aim) if traits(known.problem).of_numbers else None,
    )

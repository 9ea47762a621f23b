"""What is expected of rounds before their labels come, and how it did in those whose labels have come since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from opmon.expected import Record
from opmon.expected.record import Told
from opmon.quantities import Quantity
from opmon.store import revisions, rounds
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.types.expected import Expected

LOOKED_AT = 30
"""So many of the last rounds are looked at."""


@dataclass(frozen=True)
class ExpectedView:
    """What was told of a round when it was scored: a prediction, and no estimate."""

    quantity: Quantity
    value: float
    low: float
    high: float
    level: float
    rounds: tuple[int, ...]
    """The rounds before whose labels it stands on; none: the model's own scores alone."""
    labels: int
    notes: tuple[str, ...]
    """What it stands on, how predictions did so far, and what was wrong with them lately."""

    @classmethod
    def of(cls, round_: Round) -> Self | None:
        """None where nothing was told."""
        found = Expected.of(round_.expected)
        if found is None:
            return None
        interval = (found.value, found.low, found.high, found.level)
        return cls(round_.plan.quantity, *interval, found.rounds, found.labels, found.notes)

    @property
    def name(self) -> str:
        """What it is called everywhere, such as "expected accuracy"."""
        return f"expected {self.quantity.name}"

    @property
    def shown(self) -> str:
        """The value alone, with as many digits as the interval bears."""
        return self.quantity.texts(self.value, self.low, self.high)[0]

    @property
    def bounds(self) -> str:
        """The bounds alone."""
        _, low, high = self.quantity.texts(self.value, self.low, self.high)
        return f"{low} to {high}"

    @property
    def text(self) -> str:
        """Value and interval as people read them."""
        return self.quantity.interval(self.value, self.low, self.high)


@dataclass(frozen=True)
class ExpectedPoint:
    """A round that waits for labels, on a timeline."""

    round: int
    at: datetime
    """When the round's last input came."""
    model_version: str
    expected: ExpectedView


@dataclass(frozen=True)
class Foreseen:
    """What is expected of the rounds that wait for labels, and how such predictions did."""

    quantity: Quantity
    record: Record | None = None
    """Of the newest model version's rounds; None before any of them has labels."""
    waiting: tuple[ExpectedPoint, ...] = ()
    """The rounds without any estimate, oldest first."""

    @property
    def said(self) -> str:
        """How predictions did, in a sentence; empty before that is known."""
        if self.record is None:
            return ""
        lately = f". {self.record.lately.rstrip('.')}" if self.record.lately else ""
        return f"Where labels have come, {self.record.text(self.quantity)}{lately}."


def foreseen(connection: Connection, monitor: str, quantity: Quantity) -> Foreseen:
    """From the last rounds of a monitor."""
    some = rounds.newest(connection, monitor, LOOKED_AT)
    if not any(each.expected for each in some):
        return Foreseen(quantity)
    known = revisions.latest_of(connection, [each.id for each in some if each.expected])
    record = Record.of(_told(some, known, some[0].model, quantity), quantity)
    waiting = [
        ExpectedPoint(each.number, each.ends_at or each.opened_at, each.model_version, view)
        for each in reversed(some)
        if each.id not in known and not each.state.is_over and (view := ExpectedView.of(each)) is not None
    ]
    return Foreseen(quantity, record, tuple(each for each in waiting if each.expected.quantity == quantity))


def told_of(
    connection: Connection, monitor: str, model: tuple[str, str], quantity: Quantity, before: int | None = None
) -> list[Told]:
    """What was told of the last rounds of a model version that have a final estimate, oldest first."""
    some = rounds.newest(connection, monitor, LOOKED_AT, before)
    known = revisions.latest_of(connection, [each.id for each in some if each.expected and each.model == model])
    return _told(some, known, model, quantity)


def _told(
    newest: Sequence[Round], known: dict[int, Revision], model: tuple[str, str], quantity: Quantity
) -> list[Told]:
    found = []
    for each in reversed(newest):
        told, revision = Expected.of(each.expected), known.get(each.id)
        if told is None or revision is None or each.model != model:
            continue
        estimate = revision.estimate
        if not estimate.provisional and estimate.quantity == quantity:
            own = (told.value, told.low, told.high, told.level)
            found.append(Told(each.number, *own, estimate.value, estimate.low, estimate.high))
    return found

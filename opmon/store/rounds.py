"""Rounds: one row each, what they are made from, and how they go on.

Every function takes a connection and does not commit: what belongs together is one transaction of the caller's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import InputError, NotFoundError
from opmon.store import readiness, slices
from opmon.store.plans import RoundPlan
from opmon.store.schema import Query, Row, rounds, seen
from opmon.store.states import RoundState
from opmon.types import Document, Slice
from opmon.types.slicing import Slicing

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""From then on annotators are asked where only truth that arrives by itself answers."""
UNFINISHED = tuple(state for state in RoundState if not state.is_over)


@dataclass(frozen=True)
class Round:
    """One row of ``rounds``."""

    id: int
    monitor: str
    number: int
    state: RoundState
    model_name: str
    model_version: str
    only_version: str | None
    plan: RoundPlan
    opened_at: datetime
    received: int
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    deadline_at: datetime | None = None
    asks_at: datetime | None = None
    """From when on annotators are asked; None: from when it was drawn."""
    closed_at: datetime | None = None
    inputs: int | None = None
    unscorable: int | None = None
    losses: Mapping[str, Mapping[str, int]] | None = None
    """What its log held and the estimate does not speak of: for each kind the reasons, and how many for each."""
    duplicates: int | None = None
    skew: float | None = None
    classes: Sequence[str] | None = None
    spellings: Mapping[str, str] | None = None
    sliced: Document | None = None
    """What its inputs are divided into; see :attr:`slicing`."""
    draw: bytes | None = None
    waves: int = 0
    drift: Document | None = None
    expected: Document | None = None
    """What was told of it before its labels: see :class:`opmon.types.expected.Expected`."""
    run_id: str | None = None
    timeline_run_id: str | None = None
    reported: int = -1
    problem: str | None = None
    ready: bool = False
    asked: int = 0
    """Its tasks."""
    spoken: int = 0
    """Those of its tasks of which all was said that was asked."""
    gold_asked: int = 0
    """Its gold tasks, which are in no other count of it."""
    gold_spoken: int = 0
    pruned: Sequence[str] | None = None
    """What of it was removed, by the keys of ``keep``."""
    labels_pruned_at: datetime | None = None
    """When its tasks, labels and draw were removed; what was found out from them stays."""
    first_task: int | None = None
    """The numbers of the tasks that were removed lie between this one …"""
    last_task: int | None = None
    """… and this one."""
    urgent: bool = False
    """Whether annotators meet its tasks before those of other rounds."""

    @classmethod
    def of(cls, row: Row) -> Round:
        """From a row of the table."""
        return cls(**{**row._mapping, "plan": RoundPlan.of(row.plan), "state": RoundState(row.state)})

    @property
    def model(self) -> tuple[str, str]:
        """Its name and version."""
        return self.model_name, self.model_version

    @property
    def slicing(self) -> Slicing | None:
        """What its inputs are divided into; None where nothing divides them, or before they are scored."""
        return None if self.sliced is None else Slicing.of(self.sliced)

    @property
    def model_uri(self) -> str:
        return f"models:/{self.model_name}/{self.model_version}"

    @property
    def key(self) -> str:
        """What its MLflow run is found by."""
        return f"{self.monitor}/round/{self.number}/{self.plan.since}"

    @property
    def timeline_key(self) -> str:
        return f"{self.monitor}/timeline/{self.model_name}/{self.model_version}/{self.plan.since}"


def add(
    connection: Connection,
    monitor: str,
    pieces: Sequence[Slice],
    *,
    received: int,
    only_version: str | None,
    plan: RoundPlan,
    opened_at: datetime,
    **values: object,
) -> int:
    """Open a round and give its number: the row and the slices it covers, which moves the cursor.

    The plan also keeps since when this database knows the monitor: another database that begins at round 1 with the
    same MLflow must not find these runs and go on with them.
    """
    last = next(iter(newest(connection, monitor, 1)), None)
    since = opened_at.astimezone(UTC).isoformat() if last is None else last.plan.since
    number = 1 if last is None else last.number + 1
    round_id = connection.execute(
        rounds.insert()
        .values(
            monitor=monitor,
            number=number,
            state=RoundState.OPENED,
            received=received,
            only_version=only_version,
            plan=replace(plan, since=since).stored(),
            opened_at=opened_at,
            **values,
        )
        .returning(rounds.c.id)
    ).scalar_one()
    if pieces:
        slices.cover(connection, round_id, monitor, pieces, only_version, place=0)
    return number


def extend(
    connection: Connection,
    round_: Round,
    pieces: Sequence[Slice],
    *,
    received: int,
    plan: RoundPlan,
    losses: Mapping[str, Mapping[str, int]],
) -> None:
    """Give a round that was not scored yet more inputs: the slices behind its own, which moves the cursor."""
    place = slices.count_of(connection, round_.id)
    slices.cover(connection, round_.id, round_.monitor, pieces, round_.only_version, place)
    values = {"received": round_.received + received, "plan": plan.stored(), "losses": dict(losses) or None}
    update(connection, round_.id, **values)


def hand_over(connection: Connection, old: Round, number: int, parts: Sequence[str]) -> None:
    """Give these parts of a round that was given up to round ``number``; the cursor stays where it is."""
    new = get(connection, old.monitor, number)
    slices.move(connection, old.id, new.id, parts)
    connection.execute(seen.delete().where(seen.c.round_id == old.id))  # they are met for the first time again
    update(connection, old.id, problem=f"{old.problem}; inputs of it went to round {number}")


def slicing_before(connection: Connection, round_: Round) -> Slicing | None:
    """What the inputs of the last round before were divided into, of whatever version; None where none were."""
    query = sa.select(rounds.c.sliced).where(
        rounds.c.monitor == round_.monitor, rounds.c.number < round_.number, rounds.c.sliced.is_not(None)
    )
    found = connection.execute(query.order_by(rounds.c.number.desc()).limit(1)).scalar()
    return None if found is None else Slicing.of(found)


def update(connection: Connection, round_id: int, **values: object) -> None:
    """Set columns of a round's row."""
    connection.execute(rounds.update().where(rounds.c.id == round_id).values(**values))
    if values.keys() & {"state", "reported"}:
        readiness.mark(connection, [round_id])


def get(connection: Connection, monitor: str, number: int) -> Round:
    """The round of that number, or an error that says which there are."""
    query = sa.select(rounds).where(rounds.c.monitor == monitor, rounds.c.number == number)
    row = connection.execute(query).one_or_none()
    if row is None:
        highest = connection.scalar(sa.select(sa.func.max(rounds.c.number)).where(rounds.c.monitor == monitor))
        have = f"rounds 1 to {highest}" if highest else "no round yet"
        raise NotFoundError(f"monitor {monitor!r} has no round {number}; it has {have}")
    return Round.of(row)


def unfinished(connection: Connection, monitor: str) -> list[Round]:
    """Every round that is not closed, and every closed one whose labels have grown since its last estimate."""
    # of all monitors few are ready: asked for one, SQLite would rather walk through all of that monitor's rounds
    ready = connection.execute(sa.select(rounds.c.id, rounds.c.monitor).where(rounds.c.ready))
    ids = [row.id for row in ready if row.monitor == monitor]
    unfinished_ = sa.select(rounds.c.id).where(rounds.c.monitor == monitor, rounds.c.state.in_(UNFINISHED))
    ids += connection.scalars(unfinished_)
    return in_order(connection, sa.select(rounds).where(rounds.c.id.in_(set(ids))))


@dataclass(frozen=True)
class Unfinished:
    """What is told of a round that is not at its end, without all that it holds."""

    number: int
    state: RoundState
    problem: str | None
    deadline_at: datetime | None
    open: int
    """Its tasks that annotators are asked about, and that are not settled."""


def open_at(at: datetime) -> sa.ColumnElement[int]:
    """The tasks of a round that annotators are asked about at a moment: before it asks them, truth may come."""
    return sa.case((rounds.c.asks_at > at, 0), else_=rounds.c.asked - rounds.c.spoken)


def unfinished_of(connection: Connection, monitors: Collection[str], at: datetime) -> dict[str, list[Unfinished]]:
    """Of each monitor the rounds that are not at their end, oldest first, as they stand at a moment."""
    query = sa.select(rounds.c.monitor, rounds.c.number, rounds.c.state, rounds.c.problem, rounds.c.deadline_at)
    query = query.add_columns(open_at(at).label("open"))
    query = query.where(rounds.c.monitor.in_(monitors), rounds.c.state.in_(UNFINISHED))
    by_monitor: dict[str, list[Unfinished]] = defaultdict(list)
    for row in sorted(connection.execute(query), key=lambda row: row.number):
        state = RoundState(row.state)
        by_monitor[row.monitor].append(Unfinished(row.number, state, row.problem, row.deadline_at, row.open))
    return by_monitor


def in_order(connection: Connection, query: Query) -> list[Round]:
    """Few rounds, sorted here: asked for their order, SQLite would walk through all of the monitor's."""
    return sorted((Round.of(row) for row in connection.execute(query)), key=lambda round_: round_.number)


def abandon(connection: Connection, round_: Round, why: str, at: datetime) -> None:
    """Give a round up: it is kept with its reason and never worked on again."""
    if round_.state in (RoundState.CLOSED, RoundState.ABANDONED):
        raise InputError(f"round {round_.number} of {round_.monitor} is {round_.state} already; nothing was changed")
    update(connection, round_.id, state=RoundState.ABANDONED, closed_at=at, problem=f"given up: {why}")


def waiting(connection: Connection, monitor: str) -> int:
    """How many rounds wait for labels: those with a task that is not settled."""
    query = sa.select(sa.func.count()).select_from(rounds)
    return (
        connection.scalar(
            query.where(rounds.c.monitor == monitor, rounds.c.state == RoundState.LABELLING, ~rounds.c.ready)
        )
        or 0
    )


def newest(connection: Connection, monitor: str, limit: int, before: int | None = None) -> list[Round]:
    """The last rounds of a monitor, or the last ``before`` a number, newest first."""
    query = sa.select(rounds).where(rounds.c.monitor == monitor).order_by(rounds.c.number.desc()).limit(limit)
    if before is not None:
        query = query.where(rounds.c.number < before)
    return [Round.of(row) for row in connection.execute(query)]


def since(connection: Connection, monitor: str, moment: datetime) -> list[Round]:
    """The rounds of a monitor whose last input came at that moment or later, newest first."""
    ended = sa.func.coalesce(rounds.c.ends_at, rounds.c.opened_at)
    query = sa.select(rounds).where(rounds.c.monitor == monitor, ended >= moment).order_by(rounds.c.number.desc())
    return [Round.of(row) for row in connection.execute(query)]


def count(connection: Connection, monitor: str) -> int:
    """How many rounds a monitor has opened: they are numbered without a gap."""
    return connection.scalar(sa.select(sa.func.max(rounds.c.number)).where(rounds.c.monitor == monitor)) or 0


def drift_of(connection: Connection, monitor: str, numbers: Collection[int]) -> dict[int, Document]:
    """What rounds keep of their drift, by their numbers; rounds that keep nothing are not there."""
    query = sa.select(rounds.c.number, rounds.c.drift).where(
        rounds.c.monitor == monitor, rounds.c.number.in_(list(numbers)), rounds.c.drift.is_not(None)
    )
    return {row.number: row.drift for row in connection.execute(query)}

"""A monitor at a glance: how its model stands, its newest rounds, and what waits for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from opmon.queries.rolling import RollingPoint, rolling_as_of
from opmon.queries.standing import Standing, as_told, standing_of
from opmon.queries.watch import Watch
from opmon.store import queue, revisions, rounds, verdicts
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.types import Estimate, Verdict, VerdictState

Wait = Literal["labels", "inputs", "rounds", "run"]


@dataclass(frozen=True)
class VerdictView:
    """What a rule says of a round."""

    rule: str
    state: VerdictState
    advice: bool
    """Whether it stands for no alarm, whatever it says."""
    message: str


@dataclass(frozen=True)
class QueueView:
    """How many tasks annotators were asked, and how many of them somebody has spoken of."""

    asked: int = 0
    spoken: int = 0


@dataclass(frozen=True)
class RoundView:
    """A round with its newest estimate and what the rules said of it."""

    number: int
    state: RoundState
    model: str
    """The address of the model version."""
    ends_at: datetime | None
    received: int
    inputs: int | None
    unscorable: int | None
    duplicates: int | None
    skew: float | None
    drift_share: float | None
    estimate: Estimate | None
    failures: int | None
    """None for a regression, which has errors and no failures."""
    verdicts: tuple[VerdictView, ...]
    run_id: str | None
    problem: str | None
    queue: QueueView
    waits_for: Wait | None
    """What it waits for: "labels", or "run" where it has them all; None: nothing.

    One that gathers the inputs of its model version waits for more "inputs"; one whose turn to be judged has not come
    waits for the "rounds" before it. A round stays in the state ``labelling`` until a run has seen its labels.
    """


@dataclass(frozen=True)
class MonitorView:
    """A monitor: how its model version stands, its newest rounds first, and the tasks of all of them."""

    name: str
    status: Standing
    rounds: int
    queue: QueueView
    latest: RoundView | None
    """The newest round that has a final estimate."""
    rolling: RollingPoint | None
    newest: tuple[RoundView, ...]


def monitor_view(
    connection: Connection,
    watch: Watch,
    now: datetime,
    *,
    shown: int,
) -> MonitorView:
    """The monitor with its ``shown`` newest rounds."""
    name = watch.name
    newest = rounds.newest(connection, name, shown)
    latest = revisions.latest_final(connection, name)
    status: Standing = "unknown"
    rolling = last = None
    if latest is not None:
        round_, revision, said = latest
        status = standing_of(connection, name, round_.model, watch.acting_rules)
        rolling = rolling_as_of(connection, name, revision, rounds=watch.rolling_rounds, within=watch.rolling_within)
        last = _round(round_, revision, as_told(watch.advising_rules, said), None)
    ids = [round_.id for round_ in newest]
    estimated, judged = revisions.latest_of(connection, ids), verdicts.latest_of(connection, ids)
    views = []
    for round_ in newest:
        waits = _waits(round_, gathers(connection, round_, watch, now))
        said = as_told(watch.advising_rules, judged.get(round_.id, ()))
        views.append(_round(round_, estimated.get(round_.id), said, waits))
    whole = QueueView(*queue.progress(connection, name).get(name, (0, 0)))
    return MonitorView(name, status, rounds.count(connection, name), whole, last, rolling, tuple(views))


def gathers(connection: Connection, round_: Round, watch: Watch, now: datetime) -> bool:
    """Whether the round of a version waits for more inputs of that version before it is scored."""
    if round_.state != RoundState.OPENED or round_.only_version is None or round_.received >= watch.min_inputs:
        return False
    since = min(rounds.arrived(connection, round_.id) or round_.opened_at, round_.opened_at)
    return now.astimezone(UTC) - since < watch.max_age


def _waits(round_: Round, gathering: bool) -> Wait | None:
    if round_.state.is_over:
        return None
    if round_.state == RoundState.ESTIMATED and not round_.ready:
        return "rounds"
    if round_.state == RoundState.LABELLING and round_.spoken < round_.asked:
        return "labels"
    return "inputs" if gathering else "run"


def _round(round_: Round, revision: Revision | None, said: Sequence[Verdict], waits: Wait | None) -> RoundView:
    return RoundView(
        number=round_.number,
        state=round_.state,
        model=round_.model_uri,
        ends_at=round_.ends_at,
        received=round_.received,
        inputs=round_.inputs,
        unscorable=round_.unscorable,
        duplicates=round_.duplicates,
        skew=round_.skew,
        drift_share=(round_.drift or {}).get("share"),
        estimate=None if revision is None else revision.estimate,
        failures=revision.failures if revision is not None and revision.estimate.quantity.share else None,
        verdicts=tuple(VerdictView(each.rule, each.state, each.word == "advice", each.message) for each in said),
        run_id=round_.run_id,
        problem=round_.problem,
        queue=QueueView(round_.asked, round_.spoken),
        waits_for=waits,
    )

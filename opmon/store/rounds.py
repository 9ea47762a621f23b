"""Rounds, their slices and estimates: the queries that ``monitor`` is written in.

Every function takes a connection and does not commit: what belongs together is one transaction of the caller's.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import InputError, NotFoundError
from opmon.store.schema import estimates, labels, rounds, slices, tasks, verdicts, waits
from opmon.types import Draw, Estimate, Slice, Verdict

STATES = ("opened", "scored", "drawn", "labelling", "estimated", "closed", "abandoned")


@dataclass(frozen=True)
class Round:
    """One row of ``rounds``."""

    id: int
    monitor: str
    number: int
    state: str
    model_name: str
    model_version: str
    only_version: str | None
    plan: Mapping[str, Any]
    opened_at: datetime
    received: int
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    deadline_at: datetime | None = None
    closed_at: datetime | None = None
    inputs: int | None = None
    unscorable: int | None = None
    duplicates: int | None = None
    skew: float | None = None
    classes: Sequence[str] | None = None
    draw: bytes | None = None
    waves: int = 0
    drift: Mapping[str, Any] | None = None
    run_id: str | None = None
    timeline_run_id: str | None = None
    reported: int = -1
    problem: str | None = None

    @property
    def model(self) -> tuple[str, str]:
        """Its name and version."""
        return self.model_name, self.model_version

    @property
    def model_uri(self) -> str:
        return f"models:/{self.model_name}/{self.model_version}"

    @property
    def key(self) -> str:
        """What its MLflow run is found by."""
        return f"{self.monitor}/round/{self.number}/{self.plan['since']}"

    @property
    def timeline_key(self) -> str:
        return f"{self.monitor}/timeline/{self.model_name}/{self.model_version}/{self.plan['since']}"


@dataclass(frozen=True)
class Revision:
    """An estimate of a round, the how-manyeth, and what it was made from."""

    round_number: int
    revision: int
    estimate: Estimate
    failures: int
    labels_seen: int
    made_at: datetime


def positions(connection: Connection, monitor: str) -> dict[str, str]:
    """Where the monitor stands in every part it has read."""
    last = sa.select(sa.func.max(slices.c.id)).where(slices.c.monitor == monitor).group_by(slices.c.part)
    rows = connection.execute(sa.select(slices.c.part, slices.c.stop).where(slices.c.id.in_(last)))
    return {row.part: row.stop for row in rows}


def add(
    connection: Connection,
    monitor: str,
    pieces: Sequence[Slice],
    *,
    received: int,
    only_version: str | None,
    plan: Mapping[str, Any],
    opened_at: datetime,
    **values: Any,
) -> None:
    """Open a round: the row and the slices it covers, which moves the cursor.

    The plan also keeps since when this database knows the monitor: another database that begins at round 1 with the
    same MLflow must not find these runs and go on with them.
    """
    highest = connection.scalar(sa.select(sa.func.max(rounds.c.number)).where(rounds.c.monitor == monitor))
    since = connection.scalar(sa.select(sa.func.min(rounds.c.opened_at)).where(rounds.c.monitor == monitor))
    round_id = connection.execute(
        rounds.insert()
        .values(
            monitor=monitor,
            number=(highest or 0) + 1,
            state="opened",
            received=received,
            only_version=only_version,
            plan={**plan, "since": (since or opened_at).astimezone(UTC).isoformat()},
            opened_at=opened_at,
            **values,
        )
        .returning(rounds.c.id)
    ).scalar_one()
    connection.execute(
        slices.insert(),
        [
            {
                "round_id": round_id,
                "monitor": monitor,
                "place": place,
                "part": piece.part,
                "start": piece.start,
                "stop": piece.stop,
                "rows": piece.rows,
                "arrived_at": piece.arrived_at,
                "only_version": only_version or "",
            }
            for place, piece in enumerate(pieces)
        ],
    )


def waiting_since(connection: Connection, monitor: str, oldest: datetime) -> datetime:
    """Since when inputs wait for a round: kept from one look to the next, for a file that grows is always young."""
    since: datetime | None = connection.scalar(sa.select(waits.c.since).where(waits.c.monitor == monitor))
    if since is None:
        connection.execute(waits.insert().values(monitor=monitor, since=oldest))
        return oldest
    return min(since, oldest)


def end_wait(connection: Connection, monitor: str) -> None:
    connection.execute(waits.delete().where(waits.c.monitor == monitor))


def slices_of(connection: Connection, round_id: int) -> list[Slice]:
    rows = connection.execute(sa.select(slices).where(slices.c.round_id == round_id).order_by(slices.c.place))
    return [Slice(row.part, row.start, row.stop, row.rows, row.arrived_at) for row in rows]


def update(connection: Connection, round_id: int, **values: Any) -> None:
    connection.execute(rounds.update().where(rounds.c.id == round_id).values(**values))


def get(connection: Connection, monitor: str, number: int) -> Round:
    query = sa.select(rounds).where(rounds.c.monitor == monitor, rounds.c.number == number)
    row = connection.execute(query).one_or_none()
    if row is None:
        highest = connection.scalar(sa.select(sa.func.max(rounds.c.number)).where(rounds.c.monitor == monitor))
        have = f"rounds 1 to {highest}" if highest else "no round yet"
        raise NotFoundError(f"monitor {monitor!r} has no round {number}; it has {have}")
    return Round(**row._mapping)


def unfinished(connection: Connection, monitor: str) -> list[Round]:
    """Every round that is not closed, and every closed one whose labels have grown since its last estimate.

    One that was closed without an estimate waits for a first answer: skips alone change nothing.
    """
    seen = (
        sa.select(estimates.c.round_id, sa.func.max(estimates.c.labels_seen).label("seen"))
        .group_by(estimates.c.round_id)
        .subquery()
    )
    have = (
        sa.select(labels.c.round_id, sa.func.count().label("have"), sa.func.count(labels.c.truth).label("answers"))
        .group_by(labels.c.round_id)
        .subquery()
    )
    query = (
        sa.select(rounds)
        .outerjoin(seen, seen.c.round_id == rounds.c.id)
        .outerjoin(have, have.c.round_id == rounds.c.id)
        .where(rounds.c.monitor == monitor, rounds.c.state != "abandoned")
        .where(
            sa.or_(
                rounds.c.state != "closed",
                have.c.have > seen.c.seen,
                sa.and_(seen.c.seen.is_(None), have.c.answers > 0),
            )
        )
        .order_by(rounds.c.number)
    )
    return [Round(**row._mapping) for row in connection.execute(query)]


def abandon(connection: Connection, round_: Round, why: str, at: datetime) -> None:
    """Give a round up: it is kept with its reason and never worked on again."""
    if round_.state in ("closed", "abandoned"):
        raise InputError(f"round {round_.number} of {round_.monitor} is {round_.state} already; nothing was changed")
    update(connection, round_.id, state="abandoned", closed_at=at, problem=f"given up: {why}")


def has_settled(connection: Connection, monitor: str) -> bool:
    """Whether a round can go on without new inputs: all its tasks were spoken of, or labels came late."""
    open_task = (
        sa.select(tasks.c.id)
        .where(tasks.c.round_id == rounds.c.id)
        .where(~sa.select(labels.c.id).where(labels.c.task_id == tasks.c.id).exists())
        .exists()
    )
    waiting = sa.select(rounds.c.id).where(rounds.c.monitor == monitor, rounds.c.state == "labelling", ~open_task)
    if connection.execute(waiting.limit(1)).first() is not None:
        return True
    return any(round_.state in ("closed", "estimated") for round_ in unfinished(connection, monitor))


def newest(connection: Connection, monitor: str, limit: int) -> list[Round]:
    query = sa.select(rounds).where(rounds.c.monitor == monitor).order_by(rounds.c.number.desc()).limit(limit)
    return [Round(**row._mapping) for row in connection.execute(query)]


def add_estimate(
    connection: Connection, round_id: int, estimate: Estimate, *, failures: int, labels_seen: int, made_at: datetime
) -> int:
    """Add the next revision; gives its number, the first being 0."""
    last = connection.scalar(sa.select(sa.func.max(estimates.c.revision)).where(estimates.c.round_id == round_id))
    revision = 0 if last is None else last + 1
    connection.execute(
        estimates.insert().values(
            round_id=round_id,
            revision=revision,
            quantity=estimate.quantity,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            level=estimate.level,
            standard_error=estimate.standard_error,
            n=estimate.n,
            frame_size=estimate.frame_size,
            response=estimate.response,
            method=estimate.method,
            provisional=estimate.provisional,
            notes=list(estimate.notes),
            failures=failures,
            labels_seen=labels_seen,
            made_at=made_at,
        )
    )
    return revision


def latest_estimates(
    connection: Connection, monitor: str, *, model: tuple[str, str] | None = None, limit: int | None = None
) -> list[Revision]:
    """The newest revision of each round, oldest round first; the last ``limit`` rounds where it is given.

    ``model`` is a model's name and version, where only their rounds are meant.
    """
    newest_revision = (
        sa.select(estimates.c.round_id, sa.func.max(estimates.c.revision).label("revision"))
        .group_by(estimates.c.round_id)
        .subquery()
    )
    query = (
        sa.select(estimates, rounds.c.number)
        .join(rounds, rounds.c.id == estimates.c.round_id)
        .join(
            newest_revision,
            sa.and_(
                newest_revision.c.round_id == estimates.c.round_id,
                newest_revision.c.revision == estimates.c.revision,
            ),
        )
        .where(rounds.c.monitor == monitor)
        .order_by(rounds.c.number.desc())
    )
    if model is not None:
        query = query.where(rounds.c.model_name == model[0], rounds.c.model_version == model[1])
    if limit is not None:
        query = query.limit(limit)
    return [_revision(row) for row in reversed(connection.execute(query).all())]


def latest_estimate(connection: Connection, round_id: int) -> Revision | None:
    """The newest revision of one round."""
    query = (
        sa.select(estimates, rounds.c.number)
        .join(rounds, rounds.c.id == estimates.c.round_id)
        .where(estimates.c.round_id == round_id)
        .order_by(estimates.c.revision.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else _revision(row)


def _revision(row: Any) -> Revision:
    estimate = Estimate(
        value=row.value,
        low=row.low,
        high=row.high,
        n=row.n,
        frame_size=row.frame_size,
        response=row.response,
        method=row.method,
        level=row.level,
        quantity=row.quantity,
        standard_error=row.standard_error,
        provisional=row.provisional,
        notes=tuple(row.notes),
    )
    return Revision(row.number, row.revision, estimate, row.failures, row.labels_seen, row.made_at)


def add_verdicts(connection: Connection, round_id: int, revision: int, found: Sequence[Verdict]) -> None:
    for verdict in found:
        connection.execute(
            verdicts.insert().values(
                round_id=round_id,
                revision=revision,
                rule=verdict.rule,
                state=verdict.state,
                message=verdict.message,
                value=verdict.value,
                threshold=verdict.threshold,
                details=dict(verdict.details),
            )
        )


def latest_final(connection: Connection, monitor: str) -> tuple[Round, Revision, list[Verdict]] | None:
    """The newest round that has a final estimate, with that estimate and what the rules said."""
    query = (
        sa.select(rounds)
        .join(estimates, estimates.c.round_id == rounds.c.id)
        .where(rounds.c.monitor == monitor, ~estimates.c.provisional)
        .order_by(rounds.c.number.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    round_ = Round(**row._mapping)
    revision = latest_estimate(connection, round_.id)
    return None if revision is None else (round_, revision, latest_verdicts(connection, round_.id))


def count(connection: Connection, monitor: str) -> int:
    """How many rounds a monitor has opened."""
    return connection.scalar(sa.select(sa.func.count()).select_from(rounds).where(rounds.c.monitor == monitor)) or 0


def latest_verdicts(connection: Connection, round_id: int) -> list[Verdict]:
    """What the rules said of the newest revision of a round."""
    newest_revision = sa.select(sa.func.max(verdicts.c.revision)).where(verdicts.c.round_id == round_id)
    query = (
        sa.select(verdicts)
        .where(verdicts.c.round_id == round_id, verdicts.c.revision == newest_revision.scalar_subquery())
        .order_by(verdicts.c.id)
    )
    return [
        Verdict(row.rule, row.state, row.message, row.value, row.threshold, row.details)
        for row in connection.execute(query)
    ]


def alarmed(connection: Connection, monitor: str) -> set[int]:
    """The numbers of the rounds whose newest verdicts hold an alarm."""
    last = (
        sa.select(verdicts.c.round_id, sa.func.max(verdicts.c.revision).label("revision"))
        .group_by(verdicts.c.round_id)
        .subquery()
    )
    query = (
        sa.select(rounds.c.number)
        .join(verdicts, verdicts.c.round_id == rounds.c.id)
        .join(last, sa.and_(last.c.round_id == verdicts.c.round_id, last.c.revision == verdicts.c.revision))
        .where(rounds.c.monitor == monitor, verdicts.c.state == "alarm")
    )
    return set(connection.scalars(query))


def versions(connection: Connection, monitor: str) -> dict[int, tuple[str, datetime]]:
    """By round number: the model version, and when the round's last input came."""
    query = sa.select(rounds.c.number, rounds.c.model_version, rounds.c.ends_at, rounds.c.opened_at).where(
        rounds.c.monitor == monitor
    )
    return {row.number: (row.model_version, row.ends_at or row.opened_at) for row in connection.execute(query)}


def newest_estimated(connection: Connection, monitor: str, model: tuple[str, str]) -> int | None:
    """The newest round of a model version that has a final estimate."""
    query = (
        sa.select(sa.func.max(rounds.c.number))
        .join(estimates, estimates.c.round_id == rounds.c.id)
        .where(rounds.c.monitor == monitor, ~estimates.c.provisional)
        .where(rounds.c.model_name == model[0], rounds.c.model_version == model[1])
    )
    number: int | None = connection.scalar(query)
    return number


def last_verdict(connection: Connection, monitor: str, model: tuple[str, str], rule: str) -> tuple[int, str] | None:
    """The newest round of a model version that the rule has judged, and how it stood there last."""
    query = (
        sa.select(rounds.c.number, verdicts.c.state)
        .join(rounds, rounds.c.id == verdicts.c.round_id)
        .where(rounds.c.monitor == monitor, verdicts.c.rule == rule)
        .where(rounds.c.model_name == model[0], rounds.c.model_version == model[1])
        .order_by(rounds.c.number.desc(), verdicts.c.revision.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.number, row.state)


def pack_draw(draw: Draw) -> bytes:
    """A draw as bytes: an ``.npz`` of plain arrays, no pickles."""
    arrays: dict[str, Any] = {"design": np.array(draw.design), "frame_size": np.array(draw.frame_size)}
    arrays["positions"] = draw.positions
    arrays |= {f"column.{name}": np.asarray(values) for name, values in draw.columns.items()}
    arrays |= {f"constant.{name}": np.asarray(values) for name, values in draw.constants.items()}
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def unpack_draw(data: bytes) -> Draw:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        named = {prefix: {} for prefix in ("column", "constant")}  # type: dict[str, dict[str, Any]]
        for key in arrays.files:
            prefix, _, name = key.partition(".")
            if name:
                named[prefix][name] = arrays[key]
        return Draw(
            design=str(arrays["design"]),
            frame_size=int(arrays["frame_size"]),
            positions=arrays["positions"],
            columns=named["column"],
            constants=named["constant"],
        )

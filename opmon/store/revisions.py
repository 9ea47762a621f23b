"""Estimates in SQL: each round's first is revision 0, and a late label adds another. Nothing is overwritten."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon import quantities
from opmon.estimators.tally import Tally
from opmon.store import tallies
from opmon.store.rounds import Round
from opmon.store.schema import estimates, rounds
from opmon.store.verdicts import latest_verdicts
from opmon.types import Estimate, Verdict


@dataclass(frozen=True)
class Revision:
    """An estimate of a round, the how-manyeth, and what it was made from."""

    round_number: int
    revision: int
    estimate: Estimate
    failures: int
    labels_seen: int
    made_at: datetime
    key: int = 0
    """The estimate's own number: it grows with time, and its tally is kept under it."""


def add_estimate(
    connection: Connection,
    round_id: int,
    estimate: Estimate,
    *,
    failures: int,
    labels_seen: int,
    made_at: datetime,
    tally: Tally | None = None,
) -> int:
    """Add the next revision, with what its draws tell; gives its number, the first being 0."""
    last = connection.scalar(sa.select(sa.func.max(estimates.c.revision)).where(estimates.c.round_id == round_id))
    revision = 0 if last is None else last + 1
    added = connection.execute(
        estimates.insert().values(
            round_id=round_id,
            revision=revision,
            quantity=estimate.quantity.name,
            unit=estimate.quantity.unit,
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
    if tally is not None:
        tallies.add(connection, int(added.inserted_primary_key[0]), tally)  # type: ignore[index]
    return revision


def latest_estimates(
    connection: Connection,
    monitor: str,
    *,
    model: tuple[str, str] | None = None,
    limit: int | None = None,
    as_of: int | None = None,
) -> list[Revision]:
    """The newest revision of each round, oldest round first; the last ``limit`` rounds where it is given.

    ``model`` is a model's name and version, where only their rounds are meant, ``as_of`` the number of an estimate (see
    :func:`finals`) after which none counts.
    """
    known = (
        sa.select(estimates.c.round_id, sa.func.max(estimates.c.revision).label("revision"))
        .join(rounds, rounds.c.id == estimates.c.round_id)
        .where(rounds.c.monitor == monitor)
    )
    if as_of is not None:
        known = known.where(estimates.c.id <= as_of)
    newest_revision = known.group_by(estimates.c.round_id).subquery()
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


def first_final(connection: Connection, round_id: int) -> Revision | None:
    """The estimate of a round as it became final; later revisions correct it."""
    query = (
        sa.select(estimates, rounds.c.number)
        .join(rounds, rounds.c.id == estimates.c.round_id)
        .where(estimates.c.round_id == round_id, ~estimates.c.provisional)
        .order_by(estimates.c.revision)
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
        quantity=quantities.named(row.quantity, row.unit),
        standard_error=row.standard_error,
        provisional=row.provisional,
        notes=tuple(row.notes),
    )
    return Revision(row.number, row.revision, estimate, row.failures, row.labels_seen, row.made_at, row.id)


def finals(connection: Connection, monitor: str, model: tuple[str, str]) -> list[tuple[int, int]]:
    """Every final estimate ever made of a model version's rounds, in the order in which they were made.

    As (number of the round, a number that only grows).
    """
    query = (
        sa.select(rounds.c.number, estimates.c.id)
        .join(rounds, rounds.c.id == estimates.c.round_id)
        .where(rounds.c.monitor == monitor, ~estimates.c.provisional)
        .where(rounds.c.model_name == model[0], rounds.c.model_version == model[1])
        .order_by(estimates.c.id)
    )
    return [(row.number, row.id) for row in connection.execute(query)]


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
    round_ = Round.of(row)
    revision = latest_estimate(connection, round_.id)
    return None if revision is None else (round_, revision, latest_verdicts(connection, round_.id))


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

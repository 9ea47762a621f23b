"""Estimates in SQL: each round's first is revision 0, and a late label adds another. Nothing is overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.estimators.tally import Tally
from opmon.kept_quantities import names, spellings
from opmon.quantities import Quantity
from opmon.store import corrections, measured, sliced, tallies
from opmon.store.corrections import Corrected
from opmon.store.measured import Measured, quantity_of, quantity_values
from opmon.store.schema import Query, Row, estimates, rounds
from opmon.store.tallies import AT_ONCE
from opmon.types import Estimate
from opmon.types.slicing import Sliced


@dataclass(frozen=True)
class Revision:
    """An estimate of a round, the how-manyeth, and what it was made from."""

    round_number: int
    revision: int
    estimate: Estimate
    failures: int
    labels_seen: int
    made_at: datetime
    key: int
    """The estimate's own number: it grows with time, and its tally is kept under it."""
    model: tuple[str, str]
    """The name and version of the model."""
    ended_at: datetime
    """When the round's last input came."""
    corrected: Corrected | None = None
    """The estimate corrected for annotators who err; None where no answer is there to check another."""
    further: tuple[Measured, ...] = ()
    """What was measured beside it; read with single rounds alone."""


def add_estimate(
    connection: Connection,
    round_id: int,
    estimate: Estimate,
    *,
    failures: int,
    labels_seen: int,
    made_at: datetime,
    tally: Tally | None = None,
    corrected: Corrected | None = None,
    further: Sequence[Measured] = (),
    slices: Sequence[Sliced] = (),
) -> int:
    """Add the next revision, with what its draws tell, the further measures and its slices; gives its number, from 0
    on."""
    last = connection.scalar(sa.select(sa.func.max(estimates.c.revision)).where(estimates.c.round_id == round_id))
    revision = 0 if last is None else last + 1
    added = connection.execute(
        estimates.insert().values(
            round_id=round_id,
            revision=revision,
            **quantity_values(estimate.quantity),
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
    key = int(added.inserted_primary_key[0])  # type: ignore[index]
    if tally is not None:
        tallies.add(connection, key, tally)
    if corrected is not None:
        corrections.add(connection, key, corrected)
    measured.add(connection, key, further)
    sliced.add(connection, key, slices)
    return revision


def latest_estimates(
    connection: Connection,
    monitor: str,
    *,
    model: tuple[str, str] | None = None,
    quantity: Quantity | None = None,
    limit: int | None = None,
    since: int | None = None,
) -> list[Revision]:
    """The newest revision of each round, oldest round first; the last ``limit`` rounds where it is given.

    ``model`` is a model's name and version, where only their rounds are meant, ``quantity`` what was estimated, and
    ``since`` the number of the first round.
    """
    query = _newest_revisions(monitor, model)
    if since is not None:
        query = query.where(rounds.c.number >= since)
    if quantity is not None:
        query = query.where(*_is(quantity))
    return _oldest_first(connection, query, limit)


def finals_until(
    connection: Connection, monitor: str, model: tuple[str, str], number: int, limit: int | None
) -> list[Revision]:
    """The final estimates of a model version up to a round, oldest first; the last ``limit`` of them, or all."""
    query = _newest_revisions(monitor, model).where(rounds.c.number <= number, ~estimates.c.provisional)
    return _oldest_first(connection, query, limit)


def finals_around(
    connection: Connection,
    monitor: str,
    entry: Revision,
    *,
    count: int | None,
    within: timedelta | None,
    as_of: int | None = None,
    later: bool = True,
) -> list[Revision]:
    """The final estimates like ``entry`` that windows of ``count`` rounds, or of a time, may hold with it; in order.

    Like it are those of its model version, quantity and level. It is there itself where it is final. ``as_of`` is the
    key of an estimate after which none counts; without ``later``, no round after its own does.
    """
    like = (*_is(entry.estimate.quantity), estimates.c.level == entry.estimate.level, ~estimates.c.provisional)
    if within is not None:
        query = _newest_of(rounds.c.id.in_(_ended_since(monitor, entry, within)), as_of).where(*like)
        return sorted((_revision(row) for row in connection.execute(query)), key=lambda each: each.round_number)
    query = _newest_revisions(monitor, entry.model, as_of).where(*like)
    until = query.where(rounds.c.number <= entry.round_number)
    if not later:
        return _oldest_first(connection, until, count)
    after = query.where(rounds.c.number > entry.round_number).order_by(None).order_by(rounds.c.number)
    if count is not None:
        after = after.limit(count - 1)
    return _oldest_first(connection, until, count) + [_revision(row) for row in connection.execute(after)]


def _ended_since(monitor: str, entry: Revision, within: timedelta) -> sa.CompoundSelect[tuple[object, ...]]:
    """The rounds of the same model version that ended since so long before this one; an index finds them."""
    began = entry.ended_at - within
    rounds_ = sa.select(rounds.c.id).where(
        rounds.c.monitor == monitor, rounds.c.model_name == entry.model[0], rounds.c.model_version == entry.model[1]
    )
    untimed = rounds_.where(rounds.c.ends_at.is_(None), rounds.c.opened_at >= began)
    return sa.union_all(rounds_.where(rounds.c.ends_at >= began), untimed)


def _newest_revisions(monitor: str, model: tuple[str, str] | None, as_of: int | None = None) -> Query:
    """The newest revision of every round, last round first."""
    query = _newest_of(rounds.c.monitor == monitor, as_of).order_by(rounds.c.number.desc())
    if model is None:
        return query
    return query.where(rounds.c.model_name == model[0], rounds.c.model_version == model[1])


_NEWER = estimates.alias()
_IS_NEWER = sa.and_(_NEWER.c.round_id == estimates.c.round_id, _NEWER.c.revision > estimates.c.revision)


def _newest_of(which: sa.ColumnElement[bool], as_of: int | None = None) -> Query:
    query = _revisions().where(which)
    if as_of is None:
        return query.where(~sa.exists().where(_IS_NEWER))
    return query.where(estimates.c.id <= as_of, ~sa.exists().where(_IS_NEWER, _NEWER.c.id <= as_of))


def _revisions() -> Query:
    of_round = (rounds.c.number, rounds.c.model_name, rounds.c.model_version, rounds.c.ends_at, rounds.c.opened_at)
    found = sa.select(estimates, *of_round, *corrections.COLUMNS, measured.IS_THERE).join(
        rounds, rounds.c.id == estimates.c.round_id
    )
    return found.outerjoin(corrections.TABLE, corrections.TABLE.c.estimate_id == estimates.c.id)


def _is(quantity: Quantity) -> tuple[sa.ColumnElement[bool], ...]:
    definition = estimates.c.meaning["definition"].as_string()
    if quantity.definition:
        same = definition == quantity.definition
    else:  # PostgreSQL knows how many have no meaning at all, and takes a key inside one to be there nearly always
        same = sa.or_(estimates.c.meaning.is_(None), definition.is_(None))
    return estimates.c.quantity.in_(names(quantity)), estimates.c.unit.in_(spellings(quantity)), same


def _oldest_first(connection: Connection, query: Query, limit: int | None) -> list[Revision]:
    rows = connection.execute(query if limit is None else query.limit(limit)).all()
    return [_revision(row) for row in reversed(rows)]


def latest_estimate(connection: Connection, round_id: int) -> Revision | None:
    """The newest revision of one round."""
    query = _revisions().where(estimates.c.round_id == round_id).order_by(estimates.c.revision.desc()).limit(1)
    return _with_further(connection, connection.execute(query).one_or_none())


def first_final(connection: Connection, round_id: int) -> Revision | None:
    """The estimate of a round as it became final; later revisions correct it."""
    query = _revisions().where(estimates.c.round_id == round_id, ~estimates.c.provisional)
    return _with_further(connection, connection.execute(query.order_by(estimates.c.revision).limit(1)).one_or_none())


def _with_further(connection: Connection, row: Row | None) -> Revision | None:
    if row is None:
        return None
    return replace(_revision(row), further=measured.of(connection, row.id)) if row.has_further else _revision(row)


def became_final(connection: Connection, monitor: str, first: int, last: int) -> dict[int, int]:
    """The key of the estimate with which each round from ``first`` to ``last`` became final, by the round's number."""
    query = (
        sa.select(rounds.c.number, sa.func.min(estimates.c.id))
        .join(rounds, rounds.c.id == estimates.c.round_id)
        .where(rounds.c.monitor == monitor, rounds.c.number.between(first, last), ~estimates.c.provisional)
        .group_by(rounds.c.number)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def latest_of(connection: Connection, round_ids: Sequence[int]) -> dict[int, Revision]:
    """The newest revision of each of these rounds that has an estimate, by the round's id."""
    found: dict[int, Revision] = {}
    for start in range(0, len(round_ids), AT_ONCE):
        query = _revisions().where(estimates.c.round_id.in_(round_ids[start : start + AT_ONCE]))
        found |= {row.round_id: _revision(row) for row in connection.execute(query.order_by(estimates.c.revision))}
    beside = measured.read(connection, [each.key for each in found.values()])
    return {key: replace(each, further=beside.get(each.key, ())) for key, each in found.items()}


def _revision(row: Row) -> Revision:
    estimate = Estimate(
        value=row.value,
        low=row.low,
        high=row.high,
        n=row.n,
        frame_size=row.frame_size,
        response=row.response,
        method=row.method,
        level=row.level,
        quantity=quantity_of(row),
        standard_error=row.standard_error,
        provisional=row.provisional,
        notes=tuple(row.notes),
    )
    return Revision(
        round_number=row.number,
        revision=row.revision,
        estimate=estimate,
        failures=row.failures,
        labels_seen=row.labels_seen,
        made_at=row.made_at,
        key=row.id,
        model=(row.model_name, row.model_version),
        ended_at=row.ends_at or row.opened_at,
        corrected=corrections.of(row),
    )


def newest_final(connection: Connection, monitor: str) -> Revision | None:
    """The newest revision of the newest round that has a final estimate."""
    found = _oldest_first(connection, _newest_revisions(monitor, None).where(~estimates.c.provisional), 1)
    return found[0] if found else None


def newest_estimated(connection: Connection, monitor: str, model: tuple[str, str]) -> int | None:
    """The newest round of a model version that has a final estimate."""
    query = (
        sa.select(rounds.c.number)
        .join(estimates, estimates.c.round_id == rounds.c.id)
        .where(rounds.c.monitor == monitor, ~estimates.c.provisional)
        .where(rounds.c.model_name == model[0], rounds.c.model_version == model[1])
        .order_by(rounds.c.number.desc())
        .limit(1)
    )
    number: int | None = connection.scalar(query)
    return number


def newest_in_charge(connection: Connection, monitor: str, model_name: str, but: int) -> tuple[int, str] | None:
    """The newest round with a final estimate, but for one, whose version was the one that the monitor's address meant.

    Its number and version.
    """
    query = (
        sa.select(rounds.c.number, rounds.c.model_version)
        .join(estimates, estimates.c.round_id == rounds.c.id)
        .where(rounds.c.monitor == monitor, rounds.c.model_name == model_name, rounds.c.number != but)
        .where(~estimates.c.provisional, rounds.c.plan["current_version"].as_string() == rounds.c.model_version)
        .order_by(rounds.c.number.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else (row.number, row.model_version)

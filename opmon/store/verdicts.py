"""What rules said, in the order in which rounds were judged.

A round is judged once by each rule: the verdict of its lowest revision. Later revisions repeat or correct it, and are
no part of the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import rounds, verdicts
from opmon.types import Verdict


@dataclass(frozen=True)
class Standing:
    """How a rule stands: the last round in which it knew, and whether it alarms."""

    round_number: int
    alarmed: bool


def of_round(connection: Connection, round_id: int, rule: str) -> Verdict | None:
    """What the rule said of the round when it judged it."""
    query = (
        sa.select(verdicts)
        .where(verdicts.c.round_id == round_id, verdicts.c.rule == rule)
        .order_by(verdicts.c.revision)
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else _verdict(row)


def newest(connection: Connection, monitor: str, model: tuple[str, str], rule: str) -> Verdict | None:
    """The rule's verdict on the round of the model version that it judged last."""
    row = connection.execute(_chain(monitor, model, rule).limit(1)).first()
    return None if row is None else _verdict(row)


def standing(connection: Connection, monitor: str, model: tuple[str, str], rule: str) -> Standing | None:
    """How the rule stands; verdicts that know nothing change nothing."""
    for row in connection.execute(_chain(monitor, model, rule)):
        found = alarmed(_verdict(row))
        if found is not None:
            return Standing(row.number, found)
    return None


def alarmed(verdict: Verdict) -> bool | None:
    """Whether the verdict is an alarm, or advice that stands for one; None where it knows nothing."""
    if verdict.state == "unknown":
        return None
    return verdict.state == "alarm" or bool(verdict.details.get("advice"))


def _chain(monitor: str, model: tuple[str, str], rule: str) -> sa.Select[Any]:
    first = (
        sa.select(sa.func.min(verdicts.c.id).label("id"))
        .join(rounds, rounds.c.id == verdicts.c.round_id)
        .where(rounds.c.monitor == monitor, verdicts.c.rule == rule)
        .where(rounds.c.model_name == model[0], rounds.c.model_version == model[1])
        .group_by(verdicts.c.round_id)
        .subquery()
    )
    return (
        sa.select(verdicts, rounds.c.number)
        .join(rounds, rounds.c.id == verdicts.c.round_id)
        .join(first, first.c.id == verdicts.c.id)
        .order_by(verdicts.c.id.desc())
    )


def _verdict(row: Any) -> Verdict:
    return Verdict(row.rule, row.state, row.message, row.value, row.threshold, row.details)


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


def alarming_rounds(connection: Connection, monitor: str) -> set[int]:
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

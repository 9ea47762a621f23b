"""What rules said, in the order of the rounds.

Of a round the verdicts of its newest revision count. They are conclusions, not records: where a label comes late, those
of later rounds are stated anew (:func:`restate`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import Query, Row, rounds, verdicts
from opmon.store.tallies import AT_ONCE
from opmon.types import Verdict

Model = tuple[str, str]
"""A model's name and version."""


@dataclass(frozen=True)
class Entry:
    """The newest verdict of one rule on one round."""

    round_id: int
    number: int
    revision: int
    verdict: Verdict

    @property
    def alarmed(self) -> bool | None:
        return alarmed(self.verdict)


def alarmed(verdict: Verdict) -> bool | None:
    """Whether the verdict is an alarm, or advice that stands for one; None where it knows nothing."""
    if verdict.state == "unknown":
        return None
    return verdict.state == "alarm" or bool(verdict.details.get("advice"))


def of_round(connection: Connection, monitor: str, model: Model, rule: str, number: int) -> Entry | None:
    """What the rule says of the round."""
    return _first(connection, _entries(monitor, model, rule).where(rounds.c.number == number))


def newest(connection: Connection, monitor: str, model: Model, rule: str) -> Entry | None:
    """What the rule says of the last round that it has judged."""
    return _first(connection, _entries(monitor, model, rule))


def last_before(connection: Connection, monitor: str, model: Model, rule: str, number: int) -> Entry | None:
    """What it says of the round before, of those it has judged."""
    return _first(connection, _entries(monitor, model, rule).where(rounds.c.number < number))


def all_after(connection: Connection, monitor: str, model: Model, rule: str, number: int) -> list[Entry]:
    """What it says of the rounds after, in their order."""
    query = _entries(monitor, model, rule).where(rounds.c.number > number)
    return [_entry(row) for row in connection.execute(query)][::-1]


def standing(connection: Connection, monitor: str, model: Model, rule: str, before: int | None = None) -> Entry | None:
    """How the rule stands: on the last round of which it knows something, or the last one ``before`` a number."""
    query = _entries(monitor, model, rule).where(verdicts.c.state != "unknown")
    return _first(connection, query if before is None else query.where(rounds.c.number < before))


def rules_before(connection: Connection, monitor: str, model: Model, number: int) -> set[str]:
    """The rules that judged the last round before ``number`` which any of them judged."""
    last = (
        sa.select(rounds.c.number)
        .join(verdicts, verdicts.c.round_id == rounds.c.id)
        .where(*_of(monitor, model), rounds.c.number < number)
        .order_by(rounds.c.number.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = (
        sa.select(verdicts.c.rule)
        .join(rounds, rounds.c.id == verdicts.c.round_id)
        .where(*_of(monitor, model), rounds.c.number == last)
    )
    return set(connection.scalars(query))


def is_judged(connection: Connection, round_id: int, revision: int) -> bool:
    """Whether anything was said of this revision of the round."""
    query = sa.select(verdicts.c.id).where(verdicts.c.round_id == round_id, verdicts.c.revision == revision)
    return connection.execute(query.limit(1)).first() is not None


def add_verdicts(connection: Connection, round_id: int, revision: int, found: Sequence[Verdict]) -> None:
    for verdict in found:
        connection.execute(
            verdicts.insert().values(round_id=round_id, revision=revision, rule=verdict.rule, **_values(verdict))
        )


def restate(connection: Connection, found: Sequence[tuple[Entry, Verdict]]) -> None:
    """Let other verdicts stand where these did; all of them in one go, for there may be thousands."""
    if not found:
        return
    place = [verdicts.c[name] == sa.bindparam(f"its_{name}") for name in ("round_id", "revision", "rule")]
    rows = [
        {
            "its_round_id": entry.round_id,
            "its_revision": entry.revision,
            "its_rule": entry.verdict.rule,
            **_values(verdict),
        }
        for entry, verdict in found
    ]
    changed: dict[str, object] = {name: sa.bindparam(name) for name in _values(found[0][1])}
    connection.execute(verdicts.update().where(*place).values(**changed), rows)


def latest_verdicts(connection: Connection, round_id: int) -> list[Verdict]:
    """What the rules said of the newest revision of a round."""
    return latest_of(connection, [round_id]).get(round_id, [])


def latest_of(connection: Connection, round_ids: Sequence[int]) -> dict[int, list[Verdict]]:
    """What the rules said of the newest revision of each of these rounds that was judged, by the round's id."""
    found: dict[int, list[Verdict]] = defaultdict(list)
    for start in range(0, len(round_ids), AT_ONCE):
        some = verdicts.c.round_id.in_(round_ids[start : start + AT_ONCE])
        query = sa.select(verdicts).where(some, _OF_NEWEST_REVISION).order_by(verdicts.c.id)
        for row in connection.execute(query):
            found[row.round_id].append(verdict_of(row))
    return found


def alarming_rounds(connection: Connection, monitor: str, since: int) -> set[int]:
    """The numbers of the rounds from ``since`` on whose newest verdicts hold an alarm, of a rule that does not only
    advise."""
    acts = sa.func.coalesce(verdicts.c.details[("rule", "acts")].as_boolean(), sa.true())  # older ones do not say
    query = (
        sa.select(rounds.c.number)
        .join(verdicts, verdicts.c.round_id == rounds.c.id)
        .where(rounds.c.monitor == monitor, rounds.c.number >= since, verdicts.c.state == "alarm")
        .where(acts, _OF_NEWEST_REVISION)
    )
    return set(connection.scalars(query))


_NEWER = verdicts.alias()
_OF_NEWEST_REVISION = ~sa.exists().where(
    _NEWER.c.round_id == verdicts.c.round_id, _NEWER.c.revision > verdicts.c.revision
)
_NEWEST_OF_RULE = ~sa.exists().where(
    _NEWER.c.round_id == verdicts.c.round_id,
    _NEWER.c.rule == verdicts.c.rule,
    _NEWER.c.revision > verdicts.c.revision,
)


def _of(monitor: str, model: Model) -> tuple[sa.ColumnElement[bool], ...]:
    return rounds.c.monitor == monitor, rounds.c.model_name == model[0], rounds.c.model_version == model[1]


def _entries(monitor: str, model: Model, rule: str) -> Query:
    """The newest verdict of every round, last round first."""
    return (
        sa.select(verdicts, rounds.c.number)
        .join(rounds, rounds.c.id == verdicts.c.round_id)
        .where(*_of(monitor, model), verdicts.c.rule == rule, _NEWEST_OF_RULE)
        .order_by(rounds.c.number.desc())
    )


def _first(connection: Connection, query: Query) -> Entry | None:
    row = connection.execute(query.limit(1)).first()
    return None if row is None else _entry(row)


def _entry(row: Row) -> Entry:
    return Entry(row.round_id, row.number, row.revision, verdict_of(row))


def verdict_of(row: Row) -> Verdict:
    return Verdict(row.rule, row.state, row.message, row.value, row.threshold, row.details)


def _values(verdict: Verdict) -> dict[str, object]:
    return {
        "state": verdict.state,
        "message": verdict.message,
        "value": verdict.value,
        "threshold": verdict.threshold,
        "details": dict(verdict.details),
    }

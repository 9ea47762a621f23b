"""What labels of a task must keep to, in SQL: what may be answered in its round, and how many are to speak of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.problems import loss
from opmon.replies import Replies
from opmon.spellings import Spellings
from opmon.store._among import among, portions
from opmon.store.opinions import lacking, wanted
from opmon.store.plans import RoundPlan
from opmon.store.schema import rounds, tasks

FEW = 200
"""Tasks whose rounds are read along with each of them: a plan is read anew for every row."""
_REMEMBERED = 10_000


@dataclass(slots=True)
class _RoundTerms:
    """What labels of a round must keep to."""

    replies: Replies
    read: dict[str, str]
    """Texts that were read before, and the answer that each says."""


@dataclass(slots=True)
class Terms:
    """A task, as far as what is said of it depends on that."""

    round_id: int
    of_round: _RoundTerms
    prediction: str
    needs: int
    confirm: int
    is_gold: bool
    is_forgotten: bool
    """Whether nobody is asked about it any more, for nobody can see it: it lacks nothing, whatever is said."""

    def canonical(self, truth: str | None) -> str | None:
        """What a label says, as it is kept; an error where that is no answer."""
        of = self.of_round
        if truth is None:
            return None
        answer = of.read.get(truth)
        if answer is None:
            answer = of.replies.read(truth)
            if len(of.read) < _REMEMBERED:
                of.read[truth] = answer
        return answer

    def lacks(self, words: Mapping[str, str | None]) -> int:
        """How many annotators are still to speak of the task, with what they have said last."""
        return 0 if self.is_forgotten else lacking(words, self.needs, self.confirm, self._wrong)

    def wants(self, words: Mapping[str, str | None]) -> int:
        """How many annotators are to speak of it in all."""
        return wanted(words, self.needs, self.confirm, self._wrong)

    def _wrong(self, truth: str) -> bool:
        """Whether the model's answer is wrong where this is the truth."""
        return loss(truth, self.prediction, self.of_round.replies.problem) > 0


def terms_of(connection: Connection, task_ids: Iterable[int]) -> dict[int, Terms]:
    """The tasks that there are of these, locked: nobody else speaks of them until the transaction ends."""
    numbers = sorted(set(task_ids))
    query = _ASKED.with_for_update(key_share=True, of=tasks)
    if len(numbers) <= FEW:  # with their rounds, in one question
        query = query.add_columns(*_OF_ROUND).join(rounds, rounds.c.id == tasks.c.round_id)
    found = [
        row
        for some in portions(numbers)
        for row in connection.execute(query.where(among(connection, tasks.c.id, some))).all()
    ]
    of_round = {row.round_id: _round_terms(row) for row in found} if len(numbers) <= FEW else {}
    asked = sa.select(rounds.c.id, *_OF_ROUND)
    for some in portions(sorted({row[1] for row in found} - of_round.keys())):
        for row in connection.execute(asked.where(among(connection, rounds.c.id, some))):
            of_round[row.id] = _round_terms(row)
    return {
        task_id: Terms(round_id, of_round[round_id], prediction, needs, confirm, bool(is_gold), bool(is_forgotten))
        for task_id, round_id, prediction, needs, confirm, is_gold, is_forgotten, *_ in found
    }


_ASKED = sa.select(
    *(tasks.c[name] for name in ("id", "round_id", "prediction", "needs", "confirm")),
    tasks.c.gold.is_not(None),
    sa.and_(tasks.c.erased_at.is_not(None), tasks.c.lacks == 0),
).order_by(tasks.c.id)
_OF_ROUND = rounds.c.plan, rounds.c.classes, rounds.c.spellings


def _round_terms(row: Any) -> _RoundTerms:
    classes = None if row.classes is None else dict.fromkeys(row.classes).keys()
    return _RoundTerms(RoundPlan.of(row.plan).replies(classes, Spellings(row.spellings or {})), {})

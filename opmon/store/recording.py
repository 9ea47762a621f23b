"""Labels are recorded, in SQL: only ever added, all of a call or none, with what they change of tasks and rounds.

The rounds are locked first: of two that say the same at once, the second finds it said.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import InputError
from opmon.quantities import Problem, loss
from opmon.spellings import Spellings
from opmon.store import readiness, reopening
from opmon.store._among import among, portions
from opmon.store.opinions import lacking, wanted
from opmon.store.schema import assignments, labels, rounds, tasks
from opmon.types import Label
from opmon.values import canonical_class

LONGEST_NAME = 200
LONGEST_WHY = 2000
_TOLD = 5


@dataclass(frozen=True)
class Recorded:
    """What became of some labels: those that say what the annotator said already change nothing."""

    new: int
    unchanged: int


def record(connection: Connection, given: Sequence[Label], at: datetime) -> Recorded:
    """Add labels, all or none: an unknown task or an impossible truth is an error that names the first ones."""
    terms = terms_of(connection, {label.task_id for label in given})
    problems = [problem for label in given if (problem := problem_of(label, terms.get(label.task_id)))]
    if problems:
        more = f" … and {len(problems) - _TOLD} more" if len(problems) > _TOLD else ""
        raise InputError(f"no label was recorded, because {'; '.join(problems[:_TOLD])}{more}")
    readiness.lock(connection, {each.round_id for each in terms.values()})
    return _add(connection, given, terms, _words(connection, terms), at)


def record_possible(connection: Connection, given: Sequence[Label], at: datetime) -> tuple[Recorded, list[str]]:
    """Add those labels that can be, and say what is wrong with the others.

    One that was recorded before, with its moment, changes nothing, whatever its annotator has said since.
    """
    recorded, problems = record_each(connection, given, at)
    return recorded, [problem for problem in problems if problem is not None]


def record_each(
    connection: Connection, given: Sequence[Label], at: datetime, *, by_time: bool = False
) -> tuple[Recorded, list[str | None]]:
    """Add those labels that can be; gives for each label what is wrong with it, or None.

    ``by_time``: one that was said before its annotator's last word of the task changes nothing either.
    """
    terms = terms_of(connection, {label.task_id for label in given})
    problems = [problem_of(label, terms.get(label.task_id)) for label in given]
    possible = [label for label, problem in zip(given, problems, strict=True) if problem is None]
    readiness.lock(connection, {terms[label.task_id].round_id for label in possible})
    words = _words(connection, {label.task_id: terms[label.task_id] for label in possible})
    new = [label for label in possible if not words.hold(label, terms[label.task_id].canonical(label.truth), by_time)]
    recorded = _add(connection, new, terms, words, at)
    return Recorded(recorded.new, len(possible) - recorded.new), problems


@dataclass(frozen=True)
class Terms:
    """A task, as far as what is said of it depends on that."""

    round_id: int
    input_id: str
    prediction: str
    needs: int
    confirm: int
    is_gold: bool
    problem: Problem
    classes: Sequence[str] | None
    spellings: Spellings

    def canonical(self, truth: str | None) -> str | None:
        """The class that a label says, by its name; a number as it is."""
        if truth is None or self.problem != "classification":
            return truth
        return self.spellings.name(canonical_class(truth))

    def wrong(self, truth: str) -> bool:
        """Whether the model's answer is wrong where this is the truth."""
        return loss(truth, self.prediction, self.problem) > 0

    def lacks(self, words: Mapping[str, str | None]) -> int:
        """How many annotators are still to speak of the task, with what they have said last."""
        return lacking(words, self.needs, self.confirm, self.wrong)

    def wants(self, words: Mapping[str, str | None]) -> int:
        """How many annotators are to speak of it in all."""
        return wanted(words, self.needs, self.confirm, self.wrong)


@dataclass(frozen=True)
class _Words:
    """What was said of some tasks before."""

    last: Mapping[int, Mapping[str, str | None]]
    """By task the last word of each annotator."""
    reasons: Mapping[tuple[int, str], str | None]
    """Why an annotator skipped a task."""
    moments: Mapping[int, Collection[tuple[str, str | None, datetime]]]
    """By task who said what when."""

    def hold(self, label: Label, truth: str | None, by_time: bool) -> bool:
        """Whether a label, which says this ``truth``, is there; ``by_time``: or one that was said after it."""
        known = self.moments.get(label.task_id, ())
        if (label.annotator, truth, label.at) in known:
            return True
        return by_time and any(who == label.annotator and at > label.at for who, _, at in known)


def terms_of(connection: Connection, task_ids: Iterable[int]) -> dict[int, Terms]:
    """The tasks that there are of these."""
    found: dict[int, Terms] = {}
    columns = (tasks.c[name] for name in ("id", "round_id", "input_id", "prediction", "needs", "confirm", "gold"))
    query = sa.select(*columns)
    rows = [
        row
        for some in portions(sorted(task_ids))
        for row in connection.execute(query.where(among(connection, tasks.c.id, some)))
    ]
    of_round = sa.select(rounds.c.id, rounds.c.plan, rounds.c.classes, rounds.c.spellings)
    asked = {
        row.id: (row.plan["problem"], row.classes, Spellings(row.spellings or {}))
        for some in portions(sorted({row.round_id for row in rows}))
        for row in connection.execute(of_round.where(among(connection, rounds.c.id, some)))
    }
    for row in rows:
        found[row.id] = Terms(
            *(row.round_id, row.input_id, row.prediction, row.needs, row.confirm, row.gold is not None),
            *asked[row.round_id],
        )
    return found


def _words(connection: Connection, terms: Mapping[int, Terms]) -> _Words:
    """All that was ever said of these tasks, in the order in which it was recorded."""
    last: dict[int, dict[str, str | None]] = defaultdict(dict)
    reasons: dict[tuple[int, str], str | None] = {}
    moments: dict[int, set[tuple[str, str | None, datetime]]] = defaultdict(set)
    for some in portions(sorted(terms)):
        columns = labels.c.task_id, labels.c.annotator, labels.c.truth, labels.c.why, labels.c.at
        query = sa.select(*columns).where(among(connection, labels.c.task_id, some)).order_by(labels.c.id)
        for task_id, annotator, truth, why, at in connection.execute(query):
            last[task_id][annotator] = truth
            reasons[task_id, annotator] = why
            moments[task_id].add((annotator, truth, at))
    return _Words(last, reasons, moments)


def _add(
    connection: Connection, given: Sequence[Label], terms: Mapping[int, Terms], before: _Words, at: datetime
) -> Recorded:
    """Add what is new of the labels; the rounds are locked."""
    now: dict[int, dict[str, str | None]] = {}
    reasons = dict(before.reasons)
    rows: list[dict[str, object]] = []
    for label in given:
        asked, key = terms[label.task_id], (label.task_id, label.annotator)
        words = now.get(label.task_id)
        if words is None:
            words = now[label.task_id] = dict(before.last.get(label.task_id, {}))
        truth = asked.canonical(label.truth)
        why = label.why if truth is None else None
        if words.get(label.annotator, _NOTHING) == truth and reasons.get(key) == why:
            continue
        words[label.annotator], reasons[key] = truth, why
        rows.append(
            {
                "task_id": label.task_id,
                "round_id": asked.round_id,
                "annotator": label.annotator,
                "truth": truth,
                "why": why,
                "seconds": label.seconds,
                "gold": asked.is_gold,
                "at": label.at,
                "received_at": at,
            }
        )
    if rows:
        connection.execute(labels.insert(), rows)
        _settle(connection, terms, before.last, {task: now[task] for task in {row["task_id"] for row in rows}})  # type: ignore[index, misc]
    return Recorded(len(rows), len(given) - len(rows))


def _settle(
    connection: Connection,
    terms: Mapping[int, Terms],
    before: Mapping[int, Mapping[str, str | None]],
    now: Mapping[int, Mapping[str, str | None]],
) -> None:
    """Note what the tasks lack by now, and count those of each round that are settled."""
    by_lack: dict[int, list[int]] = defaultdict(list)
    more: Counter[tuple[int, bool]] = Counter()
    reopened: list[int] = []
    for task_id, words in now.items():
        asked, old = terms[task_id], before.get(task_id, {})
        had, lacks = asked.lacks(old), asked.lacks(words)
        if lacks != had:
            by_lack[lacks].append(task_id)
            more[asked.round_id, asked.is_gold] += (lacks == 0) - (had == 0)
        if old.keys() != words.keys() and lacks:
            reopened += [task_id] * (asked.wants(words) > asked.needs)
        elif lacks > had:
            reopened.append(task_id)
    for lacks, task_ids in by_lack.items():
        for some in portions(sorted(task_ids)):
            connection.execute(tasks.update().where(among(connection, tasks.c.id, some)).values(lacks=lacks))
    reopening.hand_out_again(connection, reopened)
    for some in portions(sorted(now)):
        spoke = {(task, who) for task in some for who in now[task].keys() - before.get(task, {}).keys()}
        _end_assignments(connection, spoke)
    for (round_id, is_gold), count in sorted(more.items()):
        column = rounds.c.gold_spoken if is_gold else rounds.c.spoken
        if count:
            connection.execute(rounds.update().where(rounds.c.id == round_id).values({column: column + count}))
    readiness.mark(connection, {terms[task_id].round_id for task_id in now})


def _end_assignments(connection: Connection, spoke: Collection[tuple[int, str]]) -> None:
    """Who has spoken of a task has it no more."""
    for annotator in {who for _, who in spoke}:
        own = sorted(task for task, who in spoke if who == annotator)
        there = assignments.c.annotator == annotator, among(connection, assignments.c.task_id, own)
        connection.execute(assignments.delete().where(*there))


_NOTHING = object()


def problem_of(label: Label, asked: Terms | None) -> str | None:
    """What is wrong with a label of a task; None where nothing is."""
    if asked is None:
        return f"there is no task {label.task_id} (export the open ones with 'opmon labels export')"
    texts = (label.annotator, label.truth or "", label.why or "")
    if not 0 < len(label.annotator) <= LONGEST_NAME or any("\0" in text for text in texts):
        return f"task {label.task_id} needs an annotator's name of 1 to {LONGEST_NAME} characters, and text without NUL"
    if label.why is not None and len(label.why) > LONGEST_WHY:
        return f"the reason why task {label.task_id} is skipped is longer than {LONGEST_WHY:,} characters"
    if label.seconds is not None and not 0 <= label.seconds < math.inf:
        return f"the time that task {label.task_id} took must be a number of seconds; got {label.seconds}"
    if label.truth is None:
        return None
    if asked.problem == "regression":
        try:
            number = float(label.truth)
        except ValueError:
            number = math.nan
        return None if math.isfinite(number) else f"task {label.task_id} asks for a number; got {label.truth!r}"
    if asked.classes is not None and asked.canonical(label.truth) not in asked.classes:
        have = ", ".join(asked.classes[:12]) + (", …" if len(asked.classes) > 12 else "")
        return f"task {label.task_id} asks for one of the classes {have}; got {label.truth!r}"
    return None

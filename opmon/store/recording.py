"""Labels are recorded, in SQL: only ever added, all of a call or none, with what they change of tasks and rounds.

The tasks are locked first: of two that say the same at once, the second finds it said. Their rounds, which all who
answer have in common, are locked last, so that nobody waits for more than another's commit.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import InputError
from opmon.store import pruned, readiness, reopening
from opmon.store._among import among, portions
from opmon.store._inserting import insert
from opmon.store._texts import NOT_TAKEN
from opmon.store.schema import assignments, labels, tasks
from opmon.store.task_terms import FEW, Terms, terms_of
from opmon.types import Label

LONGEST_NAME = 200
LONGEST_WHY = 2000
_TOLD = 5


@dataclass(frozen=True)
class Recorded:
    """What became of some labels: those that say what the annotator said already change nothing."""

    new: int
    unchanged: int
    changed: tuple[tuple[int, str], ...] = field(default=(), compare=False)
    """The new ones that correct what was said: the task, and the annotator."""


def record(connection: Connection, given: Sequence[Label], at: datetime) -> Recorded:
    """Add labels, all or none: an unknown task or an impossible truth is an error that names the first ones."""
    terms = terms_of(connection, {label.task_id for label in given})
    problems = [problem for problem in _problems(connection, given, terms) if problem]
    if problems:
        more = f" … and {len(problems) - _TOLD} more" if len(problems) > _TOLD else ""
        raise InputError(f"no label was recorded, because {'; '.join(problems[:_TOLD])}{more}")
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
    problems = _problems(connection, given, terms)
    possible = [label for label, problem in zip(given, problems, strict=True) if problem is None]
    words = _words(connection, {label.task_id: terms[label.task_id] for label in possible})
    new = possible
    if words.moments:
        new = [each for each in possible if not words.hold(each, terms[each.task_id].canonical(each.truth), by_time)]
    recorded = _add(connection, new, terms, words, at)
    return Recorded(recorded.new, len(possible) - recorded.new, recorded.changed), problems


@dataclass(frozen=True)
class _Words:
    """What was said of some tasks before."""

    last: Mapping[int, Mapping[str, str | None]]
    """By task the last word of each annotator."""
    reasons: Mapping[tuple[int, str], str | None]
    """Why an annotator skipped a task."""
    moments: Mapping[int, Mapping[tuple[str, str | None, datetime], datetime]]
    """By task who said what when; and when that was at the latest, for clocks of others may be ahead."""

    def hold(self, label: Label, truth: str | None, by_time: bool) -> bool:
        """Whether a label, which says this ``truth``, is there; ``by_time``: or one that was said after it."""
        known = self.moments.get(label.task_id, {})
        if (label.annotator, truth, label.at) in known:
            return True
        return by_time and any(who == label.annotator and at > label.at for (who, _, _), at in known.items())


def _words(connection: Connection, terms: Mapping[int, Terms]) -> _Words:
    """All that was ever said of these tasks, in the order in which it was recorded."""
    last: dict[int, dict[str, str | None]] = defaultdict(dict)
    reasons: dict[tuple[int, str], str | None] = {}
    moments: dict[int, dict[tuple[str, str | None, datetime], datetime]] = defaultdict(dict)
    for some in portions(sorted(terms)):
        columns = (labels.c[name] for name in ("task_id", "annotator", "truth", "why", "at", "received_at"))
        query = sa.select(*columns).where(among(connection, labels.c.task_id, some)).order_by(labels.c.id)
        for task_id, annotator, truth, why, at, received_at in connection.execute(query).all():
            answer = terms[task_id].of_round.replies.as_kept(truth)
            last[task_id][annotator] = answer
            reasons[task_id, annotator] = why
            moments[task_id][annotator, answer, at] = min(at, received_at)
    return _Words(last, reasons, moments)


def _add(
    connection: Connection, given: Sequence[Label], terms: Mapping[int, Terms], before: _Words, at: datetime
) -> Recorded:
    """Add what is new of the labels; the tasks are locked."""
    now: dict[int, dict[str, str | None]] = {}
    reasons = dict(before.reasons)
    rows: list[tuple[object, ...]] = []
    touched: set[int] = set()
    changed: list[tuple[int, str]] = []
    for label in given:
        task_id, annotator = label.task_id, label.annotator
        asked, key = terms[task_id], (task_id, annotator)
        words = now.get(task_id)
        if words is None:
            words = now[task_id] = dict(before.last.get(task_id, ()))
        truth = asked.canonical(label.truth)
        why = label.why if truth is None else None
        if words.get(annotator, _NOTHING) == truth and reasons.get(key) == why:
            continue
        if annotator in words:
            changed.append(key)
        words[annotator], reasons[key] = truth, why
        touched.add(task_id)
        rows.append((task_id, asked.round_id, annotator, truth, why, label.seconds, asked.is_gold, label.at, at))
    if rows:
        insert(connection, labels, _COLUMNS, rows)
        _settle(connection, terms, before.last, {task_id: now[task_id] for task_id in touched})
    return Recorded(len(rows), len(given) - len(rows), tuple(changed))


_COLUMNS = ("task_id", "round_id", "annotator", "truth", "why", "seconds", "gold", "at", "received_at")


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
        asked, old = terms[task_id], before.get(task_id, _NO_WORDS)
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
    spoke: dict[str, list[int]] = defaultdict(list)
    for task_id, words in now.items():
        for annotator in words.keys() - before.get(task_id, _NO_WORDS).keys():
            spoke[annotator].append(task_id)
    _end_assignments(connection, spoke)
    round_ids = sorted({terms[task_id].round_id for task_id in now})
    for round_id in round_ids:  # in one order, so that nobody waits for somebody who waits for them
        readiness.count(connection, round_id, more[round_id, False], more[round_id, True])


def _end_assignments(connection: Connection, spoke: Mapping[str, Sequence[int]]) -> None:
    """Who has spoken of a task has it no more; ``spoke`` has the tasks by annotator."""
    pairs = [(task_id, annotator) for annotator in spoke for task_id in spoke[annotator]]
    if len(spoke) > 1 and len(pairs) <= FEW:  # of annotators who answer at once, in one question
        held = sa.tuple_(assignments.c.task_id, assignments.c.annotator).in_(sorted(pairs))
        connection.execute(assignments.delete().where(held))
        return
    for annotator, task_ids in sorted(spoke.items()):
        for some in portions(sorted(task_ids)):
            there = assignments.c.annotator == annotator, among(connection, assignments.c.task_id, some)
            connection.execute(assignments.delete().where(*there))


_NOTHING = object()
_NO_WORDS: Mapping[str, str | None] = {}


def _problems(connection: Connection, given: Sequence[Label], terms: Mapping[int, Terms]) -> list[str | None]:
    """What is wrong with each label; None where nothing is."""
    gone = pruned.of_tasks(connection, {label.task_id for label in given} - terms.keys())
    return [
        f"task {label.task_id} was of {pruned.told(gone[label.task_id])}"
        if label.task_id in gone
        else _problem_of(label, terms.get(label.task_id))
        for label in given
    ]


def _problem_of(label: Label, asked: Terms | None) -> str | None:
    """What is wrong with a label of a task; None where nothing is."""
    if asked is None:
        return f"there is no task {label.task_id} (export the open ones with 'opmon labels export')"
    name, truth, why = label.annotator, label.truth, label.why
    if not 0 < len(name) <= LONGEST_NAME or any(NOT_TAKEN.search(text or "") for text in (name, truth, why)):
        return f"task {label.task_id} needs an annotator's name of 1 to {LONGEST_NAME} characters, and text without NUL"
    if why is not None and len(why) > LONGEST_WHY:
        return f"the reason why task {label.task_id} is skipped is longer than {LONGEST_WHY:,} characters"
    if label.seconds is not None and not 0 <= label.seconds < math.inf:
        return f"the time that task {label.task_id} took must be a number of seconds; got {label.seconds}"
    if truth is None:
        return None
    try:
        asked.canonical(truth)
    except InputError as exc:
        return f"task {label.task_id} {exc}"
    return None

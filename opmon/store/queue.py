"""The queue of tasks and the labels given to them, in SQL. Labels are only added: a correction is a new label."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.adjudication import Asked
from opmon.errors import InputError
from opmon.spellings import Spellings
from opmon.store import readiness
from opmon.store.rounds import open_at
from opmon.store.schema import Query, Row, labels, rounds, tasks
from opmon.store.states import RoundState
from opmon.store.task_keys import key_of
from opmon.types import Label, Task
from opmon.values import canonical_class

LONGEST_NAME = 200


@dataclass(frozen=True)
class Recorded:
    """What became of some labels: those that say what the annotator said already change nothing."""

    new: int
    unchanged: int


def queue(connection: Connection, monitor: str, round_id: int, wave: int, new: Sequence[Asked], at: datetime) -> None:
    """Queue tasks in the order given, which is the order in which annotators meet them."""
    connection.execute(
        tasks.insert(),
        [
            {
                "monitor": monitor,
                "round_id": round_id,
                "wave": wave,
                "place": place,
                "position": task.position,
                "input_id": task.input_id,
                "prediction": task.prediction,
                "variables": dict(task.variables),
                "payload": dict(task.payload),
                "created_at": at,
                "input_at": task.input_at,
            }
            for place, task in enumerate(new)
        ],
    )
    connection.execute(rounds.update().where(rounds.c.id == round_id).values(asked=rounds.c.asked + len(new)))


def open_tasks(
    connection: Connection, monitor: str | None = None, limit: int | None = None, *, at: datetime | None = None
) -> list[Task]:
    """The tasks that nobody has said anything of, in queue order: oldest round first, closed rounds last.

    A label of a closed round is welcome, but must not keep annotators from the rounds that still wait for them. ``at``
    leaves out those that wait for truth at that moment: whoever hands tasks to annotators gives it.
    """
    query = select_open(at).order_by(
        rounds.c.monitor, rounds.c.state == RoundState.CLOSED, rounds.c.number, tasks.c.wave, tasks.c.place
    )
    if monitor is not None:
        query = query.where(rounds.c.monitor == monitor)
    if limit is not None:
        query = query.limit(limit)
    return [task_of(row) for row in connection.execute(query)]


def select_open(at: datetime | None = None) -> Query:
    """The tasks that nobody has said anything of, but for those of rounds that were given up.

    With a moment ``at``, those that annotators are asked about then: the others wait for truth.
    """
    asked = sa.true() if at is None else sa.or_(rounds.c.asks_at.is_(None), rounds.c.asks_at <= at)
    said = sa.select(labels.c.task_id).where(labels.c.task_id == tasks.c.id).exists()
    since = rounds.c.plan["since"].as_string().label("since")
    return (
        sa.select(tasks, rounds.c.number, rounds.c.classes, rounds.c.deadline_at, since)
        .join(rounds, rounds.c.id == tasks.c.round_id)
        .where(~said, rounds.c.spoken < rounds.c.asked, rounds.c.state != RoundState.ABANDONED, asked)
    )


def task_of(row: Row) -> Task:
    """A task as it is handed out, from a row of :func:`select_open`."""
    key = key_of(row.id, row.monitor, row.number, row.input_id, row.since)
    classes = tuple(row.classes or ())
    return Task(row.id, row.monitor, row.number, row.input_id, row.payload, key, classes, row.deadline_at)


def record(connection: Connection, given: Sequence[Label], at: datetime) -> Recorded:
    """Add labels, all or none: an unknown task or an impossible truth is an error that names the first ones.

    Their rounds are locked first: of two that say the same at once, the second finds it said.
    """
    asked = _asked(connection, {label.task_id for label in given})
    problems = [problem for label in given if (problem := _problem(label, asked.get(label.task_id)))]
    if problems:
        more = f" … and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise InputError(f"no label was recorded, because {'; '.join(problems[:5])}{more}")
    touched = {asked[label.task_id].round_id for label in given}
    readiness.lock(connection, touched)
    said = _last_words(connection, {label.task_id for label in given})
    rows, spoken_of = [], {task_id for task_id, _ in said}
    newly: Counter[int] = Counter()
    for label in given:
        truth = asked[label.task_id].canonical(label.truth)
        if said.get((label.task_id, label.annotator), _NOTHING) == truth:
            continue
        said[label.task_id, label.annotator] = truth
        newly[asked[label.task_id].round_id] += label.task_id not in spoken_of
        spoken_of.add(label.task_id)
        rows.append(
            {
                "task_id": label.task_id,
                "round_id": asked[label.task_id].round_id,
                "annotator": label.annotator,
                "truth": truth,
                "at": label.at,
                "received_at": at,
            }
        )
    if rows:
        connection.execute(labels.insert(), rows)
        for round_id, count in newly.items():
            connection.execute(rounds.update().where(rounds.c.id == round_id).values(spoken=rounds.c.spoken + count))
        readiness.mark(connection, touched)
    return Recorded(len(rows), len(given) - len(rows))


def record_possible(connection: Connection, given: Sequence[Label], at: datetime) -> tuple[Recorded, list[str]]:
    """Add those labels that can be, and say what is wrong with the others.

    One that was recorded before, with its moment, changes nothing, whatever its annotator has said since.
    """
    asked = _asked(connection, {label.task_id for label in given})
    pairs = [(label, _problem(label, asked.get(label.task_id))) for label in given]
    possible = [label for label, problem in pairs if problem is None]
    readiness.lock(connection, {asked[label.task_id].round_id for label in possible})
    there = _words(connection, {label.task_id for label in possible})
    new = [
        label
        for label in possible
        if (label.task_id, label.annotator, asked[label.task_id].canonical(label.truth), label.at) not in there
    ]
    recorded = record(connection, new, at)
    known = Recorded(recorded.new, len(possible) - recorded.new)
    return known, [problem for _, problem in pairs if problem is not None]


def answers(connection: Connection, round_id: int, first: int | None = None) -> list[Asked]:
    """Every task of a round, in frame order, with its labels, or those that are among the round's ``first``."""
    said: dict[int, list[Label]] = defaultdict(list)
    given = sa.select(labels).where(labels.c.round_id == round_id).order_by(labels.c.id).limit(first)
    for row in connection.execute(given):
        said[row.task_id].append(Label(row.task_id, row.annotator, row.truth, row.at))
    query = sa.select(tasks).where(tasks.c.round_id == round_id).order_by(tasks.c.position)
    return [
        Asked(
            row.position,
            row.input_id,
            row.prediction,
            row.variables,
            row.payload,
            row.id,
            tuple(said.get(row.id, ())),
            row.input_at,
        )
        for row in connection.execute(query)
    ]


def count(connection: Connection, round_id: int) -> int:
    """How many labels a round has ever received: grows with each new one, whatever order transactions end in."""
    return connection.scalar(sa.select(sa.func.count()).where(labels.c.round_id == round_id)) or 0


def progress(connection: Connection, monitors: Collection[str], at: datetime) -> dict[str, tuple[int, int, int]]:
    """Per monitor: how many tasks there are, of how many somebody has spoken, and how many wait for annotators."""
    sums = (sa.func.sum(each) for each in (rounds.c.asked, rounds.c.spoken, open_at(at)))
    query = (
        sa.select(rounds.c.monitor, *sums)
        .where(rounds.c.monitor.in_(monitors), rounds.c.state != RoundState.ABANDONED)
        .group_by(rounds.c.monitor)
    )
    return {row[0]: (row[1], row[2], row[3]) for row in connection.execute(query)}


@dataclass(frozen=True)
class _Terms:
    """What a label of a task must keep to."""

    round_id: int
    input_id: str
    problem: str
    classes: Sequence[str] | None
    spellings: Spellings

    def canonical(self, truth: str | None) -> str | None:
        """The class that a label says, by its name; a number as it is."""
        if truth is None or self.problem != "classification":
            return truth
        return self.spellings.name(canonical_class(truth))


_NOTHING = object()


def _asked(connection: Connection, task_ids: Iterable[int]) -> dict[int, _Terms]:
    found: dict[int, _Terms] = {}
    for some in _chunks(sorted(task_ids)):
        query = (
            sa.select(tasks.c.id, tasks.c.input_id, tasks.c.round_id)
            .add_columns(rounds.c.plan, rounds.c.classes, rounds.c.spellings)
            .join(rounds, rounds.c.id == tasks.c.round_id)
            .where(tasks.c.id.in_(some))
        )
        for row in connection.execute(query):
            spellings = Spellings(row.spellings or {})
            found[row.id] = _Terms(row.round_id, row.input_id, row.plan["problem"], row.classes, spellings)
    return found


def _last_words(connection: Connection, task_ids: Iterable[int]) -> dict[tuple[int, str], str | None]:
    return {(task, annotator): truth for task, annotator, truth, _ in _words(connection, task_ids)}


def _words(connection: Connection, task_ids: Iterable[int]) -> dict[tuple[int, str, str | None, datetime], None]:
    """All that was ever said of these tasks, in the order in which it was recorded."""
    said: dict[tuple[int, str, str | None, datetime], None] = {}
    for some in _chunks(sorted(task_ids)):
        query = sa.select(labels).where(labels.c.task_id.in_(some)).order_by(labels.c.id)
        for row in connection.execute(query):
            said[row.task_id, row.annotator, row.truth, row.at] = None
    return said


def _chunks(ids: Sequence[int], size: int = 500) -> Iterable[Sequence[int]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def _problem(label: Label, asked: _Terms | None) -> str | None:
    if asked is None:
        return f"there is no task {label.task_id} (export the open ones with 'opmon labels export')"
    if not 0 < len(label.annotator) <= LONGEST_NAME or "\0" in label.annotator + (label.truth or ""):
        return f"task {label.task_id} needs an annotator's name of 1 to {LONGEST_NAME} characters, and text without NUL"
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

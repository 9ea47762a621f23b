"""The queue as annotators meet it: what the labelling page, the HTTP API and the commands use.

Each method is one short transaction. Whatever it says was done is in the database when it returns, and doing it again
changes nothing: a page that was reloaded, or did not hear the answer, asks once more.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from opmon.adjudication import TRUTH
from opmon.errors import InputError, NotFoundError
from opmon.labels.terms import QueueTerms
from opmon.store import assigning, attachments, audit, pruned, speaking
from opmon.store import queue as tasks_queue
from opmon.store.audit import Act, Entry
from opmon.store.engine import Store
from opmon.store.speaking import Progress, Spoken
from opmon.types import Label, Task

__all__ = ["Answer", "Known", "LabelQueue", "Progress", "QueueTerms", "Recorded", "Spoken", "Taken"]

MOST = 500
"""So many tasks are taken at once at most."""
LONGEST_NAME = 200
_PATIENCE, _PAUSE = 2.0, 0.05
"""Seconds for which tasks are waited for that others have locked, and between two looks."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Tasks for an annotator, in the order in which they are to be met."""

    tasks: tuple[Task, ...]
    progress: Progress


@dataclass(frozen=True, slots=True)
class Answer:
    """What an annotator says of a task; ``truth`` is None for "I cannot tell"."""

    key: str
    """The key of the task."""
    truth: str | None
    why: str | None = None
    """Why it is skipped."""
    seconds: float | None = None
    """How long it took."""
    at: datetime | None = None
    """When it was said, by this machine's clock; None, or a moment that is yet to come: now.

    The same answer sent again is known by it, and so is an old answer that comes after a newer one.
    """


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of some answers. All but the refused ones are in the database."""

    new: int
    unchanged: int
    """Those that had been said before."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """By key why an answer cannot be taken; sending it again would not help."""


@dataclass(frozen=True, slots=True)
class Known:
    """How it is known who an annotator is, and where they answer from."""

    by: str = ""
    origin: str = ""


@dataclass(frozen=True)
class LabelQueue:
    """The tasks of the monitors, for annotators: ``LabelQueue(store, settings.queue_terms)``."""

    store: Store
    terms: Mapping[str, QueueTerms] = field(default_factory=dict)
    """By monitor; one that is not there has the usual ones."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def take(self, annotator: str, monitor: str, count: int = 1, *, most: int = MOST) -> Taken:
        """Up to ``count`` tasks, the annotator's for a while: first those that they have already.

        Urgent rounds come first, then those that are due first; inside a round the order is random. None means that
        none is free: where others only have the last ones locked for a moment, it is looked again.
        """
        _check_name(annotator)
        end = time.monotonic() + _PATIENCE
        while True:
            taken, passed = self._taken(annotator, monitor, max(1, min(count, most)))
            if not passed or time.monotonic() > end:
                return taken
            time.sleep(_PAUSE)

    def _taken(self, annotator: str, monitor: str, count: int) -> tuple[Taken, bool]:
        """What can be assigned now, and whether it is none because others have tasks locked that are free."""
        terms, now = self.terms.get(monitor, QueueTerms()), self.clock()
        with self.store.write() as connection:
            ids = assigning.assign(
                *(connection, annotator, monitor, count), at=now, until=now + terms.lease, provider=terms.provider
            )
            tasks = speaking.tasks_by_id(connection, ids)
            progress = speaking.progress(connection, monitor, now, annotator)
            passed = not ids and assigning.passes_over(connection, annotator, monitor, now, terms.provider)
        return Taken(tuple(tasks[task_id] for task_id in ids), progress), passed

    def answer(self, annotator: str, answers: Sequence[Answer]) -> Recorded:
        """Record what an annotator says; a correction is a new label beside the one that it corrects.

        What was said before their last word of a task changes nothing, such as an answer that a connection held up.
        """
        recorded, refused = self._record([(annotator, answers)])
        return Recorded(recorded.new, recorded.unchanged, refused[0])

    def answer_together(
        self, said: Sequence[tuple[str, Sequence[Answer]]], known: Mapping[str, Known] | None = None
    ) -> list[dict[str, str]]:
        """Record what several annotators say, in one transaction: for each, by key, why an answer cannot be taken.

        Where many answer at once this is several times quicker than a transaction for each. ``known`` tells of the
        annotators what is noted beside a correction.
        """
        return self._record(said, known)[1]

    def give_back(self, annotator: str, keys: Sequence[str]) -> int:
        """Let others have these tasks; gives how many of them the annotator had."""
        with self.store.write() as connection:
            known = speaking.named(connection, keys)
            return assigning.give_back(connection, annotator, [task.id for task in known.values()])

    def said(self, annotator: str, monitor: str, last: int = 20) -> tuple[Spoken, ...]:
        """What an annotator said last of the tasks that they spoke of last, newest first."""
        with self.store.read() as connection:
            return tuple(speaking.said(connection, annotator, monitor, max(1, min(last, MOST))))

    def progress(self, monitor: str, annotator: str | None = None) -> Progress:
        """How far the rounds are that wait for annotators."""
        with self.store.read() as connection:
            return speaking.progress(connection, monitor, self.clock(), annotator)

    def picture(self, key: str, field: str) -> bytes:
        """The bytes that the payload of a task refers to as ``attached``."""
        with self.store.read() as connection:
            task = speaking.task_by_key(connection, key)
            if task is None:
                raise NotFoundError(_not_there(key, speaking.pruned_at(connection, [key])))
            content = attachments.one(connection, task.id, field)
        if content is not None:
            return content
        if attachments.is_erased(task.payload):
            raise NotFoundError(f"what task {key} showed was erased {task.payload[attachments.ERASED]}")
        raise NotFoundError(f"task {key} has no picture in its field {field[:60]!r}")

    def _record(
        self, said: Sequence[tuple[str, Sequence[Answer]]], asked: Mapping[str, Known] | None = None
    ) -> tuple[tasks_queue.Recorded, list[dict[str, str]]]:
        for annotator, _ in said:
            _check_name(annotator)
        now = self.clock()
        given = [(place, annotator, each) for place, (annotator, answers) in enumerate(said) for each in answers]
        refused: list[dict[str, str]] = [{} for _ in said]
        with self.store.write() as connection:
            known = speaking.named(connection, [answer.key for _, _, answer in given])
            gone = speaking.pruned_at(connection, [each.key for _, _, each in given if each.key not in known])
            taken: list[tuple[int, str, Answer]] = []
            for place, annotator, answer in given:
                problem = _problem(answer, known, gone)
                if problem is None:
                    taken.append((place, annotator, answer))
                else:
                    refused[place][answer.key] = problem
            labels = [_label(known[answer.key], annotator, answer, now) for _, annotator, answer in taken]
            recorded, problems = tasks_queue.record_each(connection, labels, now, by_time=True)
            if recorded.changed:
                audit.note(connection, *_corrections(recorded.changed, known, asked or {}, now))
        for (place, _, answer), found in zip(taken, problems, strict=True):
            if found is not None:
                refused[place][answer.key] = found
        return recorded, refused


_NO_TASK = "there is no task {} in this database; was it given out by another one?"


def _corrections(
    changed: Sequence[tuple[int, str]],
    tasks: Mapping[str, speaking.Named],
    asked: Mapping[str, Known],
    at: datetime,
) -> list[Entry]:
    """What is noted of answers that correct others: for each annotator and monitor how many."""
    monitors = {task.id: task.monitor for task in tasks.values()}
    many = Counter((annotator, monitors[task_id]) for task_id, annotator in changed)
    entries = []
    for (annotator, monitor), times in sorted(many.items()):
        known = asked.get(annotator, Known())
        entries.append(Entry(at, Act.ANSWERS_CHANGED, annotator, known.by, known.origin, monitor, times=times))
    return entries


def _check_name(annotator: str) -> None:
    if not 0 < len(annotator) <= LONGEST_NAME or "\0" in annotator:
        raise InputError(f"an annotator's name has 1 to {LONGEST_NAME} characters; got {annotator[:60]!r}")
    if annotator == TRUTH:
        raise InputError(f"no annotator may be called {TRUTH!r}: it is the name of truth that arrives by itself")


def _label(task: speaking.Named, annotator: str, answer: Answer, now: datetime) -> Label:
    at = now if answer.at is None else min(answer.at, now)
    return Label(task.id, annotator, answer.truth, at, answer.why, answer.seconds)


def _not_there(key: str, gone: Mapping[str, datetime]) -> str:
    """Why a key names no task."""
    if key not in gone:
        return _NO_TASK.format(key[:60])
    return f"task {key} was of a round whose {pruned.words(gone[key])}: no answer to it is taken any more"


def _problem(answer: Answer, known: Mapping[str, speaking.Named], gone: Mapping[str, datetime]) -> str | None:
    """Why an answer cannot be taken, whatever its task is."""
    if answer.key not in known:
        return _not_there(answer.key, gone)
    if answer.at is not None and answer.at.tzinfo is None:
        return f"the time of an answer must carry its zone; got {answer.at.isoformat()}"
    return None

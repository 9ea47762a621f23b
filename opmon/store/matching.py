"""Which task each line of a label file speaks of: all that the line says must agree with what this database asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.adjudication import TRUTH
from opmon.store import pruned
from opmon.store._among import among, portions
from opmon.store.pruned import Emptied
from opmon.store.schema import rounds, tasks
from opmon.store.task_keys import key_of, number_in


class Named(Protocol):
    """What a line says of its task; None for what it leaves out."""

    @property
    def line(self) -> int: ...
    @property
    def task_key(self) -> str | None: ...
    @property
    def task_id(self) -> int | None: ...
    @property
    def monitor(self) -> str | None: ...
    @property
    def input_id(self) -> str | None: ...
    @property
    def round(self) -> int | None: ...
    @property
    def annotator(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Matched:
    """The number of each line's task, None for those that are refused."""

    task_ids: tuple[int | None, ...]
    refused: tuple[tuple[int, str], ...]
    """By the number of the line why it has no task."""
    pruned: frozenset[int] = frozenset()
    """Those of the refused lines whose task went with the labels of its round."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, line by line."""
        return tuple(f"line {line} {why}" for line, why in self.refused)

    @property
    def faults(self) -> tuple[str, ...]:
        """The same without the lines of pruned labels: whoever tells all answers anew tells those, too."""
        return tuple(f"line {line} {why}" for line, why in self.refused if line not in self.pruned)


def match(
    connection: Connection, lines: Sequence[Named], *, corrected: bool = False, only_asked: bool = False
) -> Matched:
    """The tasks that the lines speak of; ``corrected``: a later line may say anew what an earlier one said.

    ``only_asked``: a line of an input that no label was asked of has no task, and that is no problem.

    A line names its task by ``task_key``, which an export gives it; or by ``input_id`` with ``task_id`` or ``monitor``:
    the newest task of that input is meant, or that of ``round``; a gold one only where there is no other. A number
    alone is not enough.
    """
    named = [_number(line) for line in lines]
    by_number = {task.id: task for task in _by_number(connection, {number for number in named if number is not None})}
    without = [line for line, number in zip(lines, named, strict=True) if number is None]
    by_input = _by_input(connection, without)
    gone = _Gone.of(connection, lines, by_number, by_input)
    task_ids: list[int | None] = []
    refused: list[tuple[int, str]] = []
    late: set[int] = set()
    spoken: dict[tuple[int, str], int] = {}
    for line, number in zip(lines, named, strict=True):
        task = by_number.get(number) if number is not None else _newest(by_input, line)
        if only_asked and task is None and line.task_key is None and line.task_id is None:
            task_ids.append(None)
            continue
        problem = _misnamed(line) or _unnamed(line, number)
        if problem is None and task is None and (problem := gone.why(line, number)) is not None:
            late.add(line.line)
        if problem is None:
            problem = _unknown(line) if task is None else _differs(line, task)
        if task is not None and problem is None:
            before = spoken.setdefault((task.id, line.annotator), line.line)
            problem = None if corrected or before == line.line else f"answers the same task as line {before}"
        if problem is not None:
            refused.append((line.line, problem))
        task_ids.append(task.id if task is not None and problem is None else None)
    return Matched(tuple(task_ids), tuple(refused), frozenset(late))


class _Task(NamedTuple):
    """A task of the database: a tuple, for there may be a million."""

    id: int
    monitor: str
    round: int
    input_id: str
    key: str
    is_gold: bool


@dataclass(frozen=True)
class _Gone:
    """The rounds whose labels were pruned, as far as lines may speak of them."""

    by_task: Mapping[int, Sequence[Emptied]]
    by_monitor: Mapping[str, Sequence[Emptied]]

    @classmethod
    def of(
        cls,
        connection: Connection,
        lines: Sequence[Named],
        by_number: Mapping[int, _Task],
        by_input: Mapping[tuple[str, str], Sequence[_Task]],
    ) -> _Gone:
        """Looked for only where the task of a line is not there."""
        numbers = {number for line in lines if (number := _number(line)) is not None} - by_number.keys()
        others = [line for line in lines if _number(line) is None and line.monitor is not None]
        monitors = {line.monitor or "" for line in others if (line.monitor, line.input_id) not in by_input}
        found = pruned.of_monitors(connection, monitors) if monitors else {}
        return cls(pruned.of_tasks(connection, numbers), found)

    def why(self, line: Named, number: int | None) -> str | None:
        """That the line is of a task whose labels were pruned, or may be; None where it is not."""
        if number is not None:
            of = self.by_task.get(number, ())
            named = [each for each in of if line.monitor in (None, each.monitor) and line.round in (None, each.number)]
            return f"is of task {line.task_key or number} of {pruned.told(named)}" if named else None
        of = self.by_monitor.get(line.monitor or "", ())
        if line.round is not None:
            of = [each for each in of if each.number == line.round]
            return f"is of input {line.input_id!r} in {pruned.told(of)}" if of else None
        if not of:
            return None
        newest = max(of, key=lambda each: each.number)
        return (
            f"is of input {line.input_id!r}: monitor {line.monitor!r} asked for no label of it, or asked in a round up "
            f"to {newest.number}, of which {pruned.words(newest.at)}"
        )


def _number(line: Named) -> int | None:
    if line.task_key is not None:
        return number_in(line.task_key)
    return line.task_id


def _misnamed(line: Named) -> str | None:
    if line.annotator != TRUTH:
        return None
    return f"speaks as {TRUTH!r}, which is the name of truth that arrives by itself; name its annotator otherwise"


def _unnamed(line: Named, number: int | None) -> str | None:
    if line.task_key is not None:
        return None if number is not None else f"has a task_key that is none: {line.task_key!r}"
    if line.input_id is None:
        return (
            f"names task {line.task_id} by its number alone, which is another input's in another database; keep the "
            f"column task_key of the export, or input_id"
        )
    return None


def _unknown(line: Named) -> str:
    if line.task_key is not None:
        return f"is of task {line.task_key}, which this database has not; was the file exported from another one?"
    if line.task_id is not None:
        return f"is of task {line.task_id}: there is no task {line.task_id} (opmon labels export writes the open ones)"
    where = f"monitor {line.monitor!r}" + (f" in round {line.round}" if line.round is not None else "")
    return f"is of input {line.input_id!r}: {where} asked for no label of it"


def _differs(line: Named, task: _Task) -> str | None:
    """What the line says otherwise than the task it names."""
    if line.task_key is not None and line.task_key != task.key:
        return f"is of task {line.task_key}, which another database asked for: here task {task.id} is {task.key}"
    if line.task_id is None and line.monitor is None and line.round is None and line.input_id is None:
        return None
    for what, said, known in (
        ("task_id", line.task_id, task.id),
        ("monitor", line.monitor, task.monitor),
        ("round", line.round, task.round),
        ("input_id", line.input_id, task.input_id),
    ):
        if said is not None and said != known:
            return f"says {what} {said!r}, and the {what} of task {line.task_key or task.id} is {known!r}"
    return None


def _newest(by_input: dict[tuple[str, str], list[_Task]], line: Named) -> _Task | None:
    found = by_input.get((line.monitor or "", line.input_id or ""), [])
    return max(
        (task for task in found if line.round in (None, task.round)),
        key=lambda task: (not task.is_gold, task.id),
        default=None,
    )


def _by_number(connection: Connection, numbers: Iterable[int]) -> Iterator[_Task]:
    for some in portions(sorted(numbers)):
        yield from _tasks(connection, among(connection, tasks.c.id, some))


def _by_input(connection: Connection, lines: Iterable[Named]) -> dict[tuple[str, str], list[_Task]]:
    wanted: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        if line.monitor is not None and line.input_id is not None:
            wanted[line.monitor].add(line.input_id)
    found: dict[tuple[str, str], list[_Task]] = defaultdict(list)
    for monitor, input_ids in wanted.items():
        for some in portions(sorted(input_ids)):
            named = among(connection, tasks.c.input_id, some)
            for task in _tasks(connection, sa.and_(tasks.c.monitor == monitor, named)):
                found[monitor, task.input_id].append(task)
    return found


def _tasks(connection: Connection, condition: sa.ColumnElement[bool]) -> Iterator[_Task]:
    columns = tasks.c.id, tasks.c.monitor, tasks.c.input_id, tasks.c.round_id, tasks.c.gold.is_not(None)
    found = connection.execute(sa.select(*columns).where(condition)).all()
    asked = sa.select(rounds.c.id, rounds.c.number, rounds.c.plan)
    known = {
        row.id: (row.number, row.plan["since"])
        for some in portions(sorted({row[3] for row in found}))
        for row in connection.execute(asked.where(among(connection, rounds.c.id, some)))
    }
    for task_id, monitor, input_id, round_id, is_gold in found:
        number, since = known[round_id]
        yield _Task(
            *(task_id, monitor, number, input_id, key_of(task_id, monitor, number, input_id, since)), bool(is_gold)
        )

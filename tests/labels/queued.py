"""Rounds with tasks, as tests of the queue need them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from opmon.adjudication import Asked
from opmon.store import queue, rounds
from opmon.store.engine import Store
from opmon.store.plans import RoundPlan
from opmon.types import Problem, Slice

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def asked(count: int, **changes: object) -> list[Asked]:
    """Inputs that the model took for a 7; of which ``changes`` says more."""
    own = {"payload": {"x": 1}, **changes}
    return [Asked(k, f"input-{k}", "7", {"confidence": 0.5}, task_id=None, **own) for k in range(count)]  # type: ignore[arg-type]


def gold(count: int, truth: str = "1") -> list[Asked]:
    return [Asked(-1 - k, f"gold-{k}", "", {}, {"x": 1}, gold=truth) for k in range(count)]


def open_round(
    store: Store,
    new: Sequence[Asked],
    monitor: str = "digits",
    problem: Problem = "classification",
    **values: object,
) -> int:
    """A round in labelling with these tasks, in this order; gives its number in the database."""
    with store.write() as connection:
        number = rounds.count(connection, monitor) + 1
        plan = RoundPlan(problem=problem)
        own = {"model_name": monitor, "model_version": "1", "plan": plan, "opened_at": NOW}
        piece = Slice("a", str(number), str(number + 1), 10, NOW)
        rounds.add(connection, monitor, [piece], received=10, only_version=None, **own)  # type: ignore[arg-type]
        round_ = rounds.get(connection, monitor, number)
        queue.queue(connection, monitor, round_.id, 0, new, NOW)
        due = NOW + timedelta(days=7)
        rest = {"state": "labelling", "classes": ["0", "1", "7"], "deadline_at": due, **values}
        rounds.update(connection, round_.id, **rest)
    return round_.id

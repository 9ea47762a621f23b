"""A past for a monitor, written into its database as cycles would have: years of rounds in a second."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from opmon.quantities import Quantity, mean_squared_error
from opmon.store import schema
from opmon.store.draws import pack_draw
from opmon.store.engine import Connection, Store
from opmon.store.measured import Measured
from opmon.store.plans import RoundPlan
from opmon.types import Draw, Estimate
from opmon.types.expected import Expected
from tests.made_once import new_opmon_database
from tests.web.maps import map_rounds
from tests.web.world import DIGITS, World, monitor

LABELS, INPUTS = 60, 1000
_AT_ONCE = 5000


def of_numbers(k: int) -> dict[str, Any]:
    """An input of numbers and a word."""
    return {"age": 20 + k % 50, "city": ("Oslo", "Rome", "Graz")[k % 3], "income": 1000.5 + 37 * k}


@dataclass(frozen=True)
class Past:
    """What became of a monitor: its accuracy falls by ``drop`` in the last tenth of its rounds, where it alarms."""

    monitor: str
    rounds: int
    model: str = "digits"
    versions: int = 3
    accuracy: float = 0.94
    drop: float = 0.12
    threshold: float = 0.9
    rule: str | None = "floor"
    """None: no rule judges it."""
    delivered: bool = False
    """Whether its events reached the webhook; else that was given up."""
    with_tasks: int = 2
    """So many of the newest rounds have their tasks and labels."""
    waits: bool = True
    """Whether a last round waits for its labels."""
    classes: Sequence[str] = tuple("0123456789")
    unit: str = ""
    payload: Callable[[int], dict[str, Any]] = of_numbers
    problem: str = "classification"
    scale: float = 40.0
    """How large the errors of numbers are."""
    until: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    every: timedelta = timedelta(days=1)

    def at(self, number: int) -> datetime:
        return self.until - (self.rounds - number) * self.every

    def version(self, number: int) -> str:
        return str(1 + (number - 1) * self.versions // self.rounds)

    def is_low(self, number: int) -> bool:
        return number > 0.9 * self.rounds


def live_through(store: Store, *pasts: Past) -> None:
    """Write the past of monitors that have none."""
    with store.write() as connection:
        first = {table: (connection.scalar(sa.select(sa.func.max(table.c.id))) or 0) + 1 for table in _NUMBERED}
    for past in pasts:
        made = _Made(past, first)
        with store.write() as connection:
            for table, rows in made.tables():
                for start in range(0, len(rows), _AT_ONCE):
                    connection.execute(table.insert(), rows[start : start + _AT_ONCE])
                if rows and table in first:
                    first[table] += len(rows)
    if not store.is_sqlite:
        with store.write() as connection:
            _go_on(connection)


_NUMBERED = (schema.rounds, schema.tasks, schema.labels, schema.estimates, schema.verdicts, schema.deliveries)


def _go_on(connection: Connection) -> None:
    """Numbers go on behind those that were given."""
    for table in _NUMBERED:
        last = f"(SELECT coalesce(max(id), 1) FROM {table.name})"
        connection.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), {last})")


class _Made:
    """The rows of one past."""

    def __init__(self, past: Past, first: dict[sa.Table, int]) -> None:
        self.past, self.first = past, first
        self.rng = np.random.default_rng(len(past.monitor) + past.rounds)
        self.base = first[schema.rounds] - 1
        self.rows: dict[sa.Table, list[dict[str, Any]]] = {table: [] for table in (*_NUMBERED, schema.events)}
        self.rows[schema.cycles] = [
            {"monitor": past.monitor, "at": past.until, "succeeded_at": past.until, "problem": None}
        ]
        self.rows[schema.ticks] = [{"monitor": past.monitor, "at": past.until}]
        for number in range(1, past.rounds + 1):
            self._round(number)

    def tables(self) -> Iterator[tuple[sa.Table, list[dict[str, Any]]]]:
        order = (schema.rounds, schema.tasks, schema.labels, schema.estimates, schema.verdicts, schema.events)
        for table in (*order, schema.deliveries, schema.cycles, schema.ticks):
            yield table, self.rows[table]

    def _next(self, table: sa.Table) -> int:
        return self.first[table] + len(self.rows[table])

    def _round(self, number: int) -> None:
        past, at = self.past, self.past.at(number)
        key = self.base + number
        waiting = past.waits and number == past.rounds
        plan = RoundPlan(problem=past.problem, unit=past.unit or None, budget=LABELS, since="2026")  # type: ignore[arg-type]
        kept = number > past.rounds - past.with_tasks
        accuracy = past.accuracy - (past.drop if past.is_low(number) else 0.0)
        wrong = self.rng.random(LABELS) > accuracy
        positions = np.sort(self.rng.choice(INPUTS, LABELS, replace=False)) if kept else np.arange(0)
        self.rows[schema.rounds].append(
            {
                "id": key, "monitor": past.monitor, "number": number, "state": "labelling" if waiting else "closed",
                "model_name": past.model, "model_version": past.version(number), "plan": plan.stored(),
                "opened_at": at, "starts_at": at - past.every, "ends_at": at, "closed_at": None if waiting else at,
                "deadline_at": at + timedelta(days=7), "received": INPUTS + 12, "inputs": INPUTS, "unscorable": 9,
                "duplicates": 3, "classes": list(past.classes), "waves": 1, "reported": 0, "asked": LABELS,
                "spoken": 12 if waiting else LABELS, "run_id": f"{key:032x}", "timeline_run_id": f"{0:032x}",
                "draw": _draw(positions) if kept else None, "drift": _drift(past, number),
                "expected": _expected(past, number),
            }
        )  # fmt: skip
        if kept:
            self._tasks(number, key, positions, wrong, 12 if waiting else LABELS)
        if not waiting:
            self._conclude(number, key, wrong, at)

    def _tasks(self, number: int, key: int, positions: Any, wrong: Any, answered: int) -> None:
        past = self.past
        for k, position in enumerate(positions.tolist()):
            task = self._next(schema.tasks)
            names = list(past.classes) or ["12.5", "8.0"]
            truth = names[k % len(names)]
            said = names[(k + 1) % len(names)] if wrong[k] else truth
            at = past.at(number)
            self.rows[schema.tasks].append(
                {
                    "id": task, "monitor": past.monitor, "round_id": key, "wave": 0, "place": k, "position": position,
                    "input_id": f"{past.monitor}-{number}-{k}", "prediction": said, "payload": past.payload(k),
                    "variables": {"confidence": round(0.9 - 0.5 * bool(wrong[k]), 3)}, "created_at": at,
                    "lacks": 0 if k < answered else 1,
                }
            )  # fmt: skip
            if k < answered:
                self.rows[schema.labels].append(
                    {
                        "id": self._next(schema.labels), "task_id": task, "round_id": key, "annotator": "ann",
                        "truth": truth, "at": at, "received_at": at,
                    }
                )  # fmt: skip

    def _conclude(self, number: int, key: int, wrong: Any, at: datetime) -> None:
        past = self.past
        value = 1 - float(wrong.mean())
        half = 1.96 * math.sqrt((value * (1 - value) + 0.01) / LABELS)
        low, high = max(value - half, 0.0), min(value + half, 1.0)
        scale = past.scale if past.problem == "regression" else 1.0
        numbers = {"value": value * scale, "low": low * scale, "high": high * scale, "standard_error": half / 1.96}
        self.rows[schema.estimates].append(
            {
                "id": self._next(schema.estimates), "round_id": key, "revision": 0, "level": 0.95, "n": LABELS,
                "quantity": "mean squared error" if past.problem == "regression" else "accuracy",
                "unit": mean_squared_error(past.unit).unit if past.unit else "",
                "frame_size": INPUTS, "response": 1.0, "method": "srs",
                "provisional": False, "notes": [], "failures": int(wrong.sum()), "labels_seen": LABELS, "made_at": at,
                **numbers,
            }
        )  # fmt: skip
        if past.rule is None:
            return
        alarm = high < past.threshold
        words = f"the accuracy {'is below' if alarm else 'may be above'} {past.threshold:.0%}: {value:.1%}"
        said = {"id": self._next(schema.verdicts), "round_id": key, "revision": 0, "rule": past.rule}
        self.rows[schema.verdicts].append(
            {**said, "state": "alarm" if alarm else "ok", "message": words, "value": value,
             "threshold": past.threshold, "details": {}}
        )  # fmt: skip
        if alarm:
            self._event(number, key, words, at)

    def _event(self, number: int, key: int, words: str, at: datetime) -> None:
        past, event = self.past, f"{self.past.monitor}-{number}"[-60:]
        body = {"id": event, "monitor": past.monitor, "round": number, "rule": past.rule, "type": "opmon.alarm",
                "message": words}  # fmt: skip
        self.rows[schema.events].append(
            {"id": event, "monitor": past.monitor, "round_id": key, "rule": past.rule, "type": "opmon.alarm",
             "body": body, "created_at": at}
        )  # fmt: skip
        self.rows[schema.deliveries].append(
            {"id": self._next(schema.deliveries), "event_id": event, "action": "webhook",
             "state": "delivered" if past.delivered else "dead", "attempts": 1 if past.delivered else 8, "next_at": at,
             "problem": None if past.delivered else "https://hooks.example.com answered 500"}
        )  # fmt: skip


def _draw(positions: Any) -> bytes:
    return pack_draw(Draw("srs", INPUTS, positions, constants={"replacement": np.array(False)}))


def _expected(past: Past, number: int) -> dict[str, Any] | None:
    """What was told of a round before its labels: a little slow to fall."""
    value = past.accuracy - (past.drop if past.is_low(number - 1) else 0.0) + 0.01 * math.sin(number)
    if past.problem == "regression":
        return {"why": "no round of this model version has a final estimate yet, and scores alone say nothing of it"}
    before = tuple(range(max(1, number - 30), number))
    notes = (f"from the model's own scores, corrected by the {LABELS * len(before):,} labels of {len(before)} rounds",)
    return Expected(value, value - 0.05, min(value + 0.05, 1), 0.95, 0.02, 1.0, before, LABELS, notes).stored()


def _drift(past: Past, number: int) -> dict[str, Any] | None:
    if past.rounds - number > 3:
        return None
    drifted = past.is_low(number)
    compared = [
        {"name": "age", "method": "K-S p_value", "value": 0.001 if drifted else 0.4, "threshold": 0.05,
         "drifted": drifted, "own": False},
        {"name": "city", "method": "chi-square p_value", "value": 0.62, "threshold": 0.05, "drifted": False,
         "own": False},
        {"name": "model prediction", "method": "chi-square p_value", "value": 0.3, "threshold": 0.05, "drifted": False,
         "own": True},
    ]  # fmt: skip
    share = 0.5 if drifted else 0.0
    return {"share": share, "answers": 0.0, "drifted": ["age"] if drifted else [], "compared": compared,
            "skipped": {}, "problem": None}  # fmt: skip


def confusion(*classes: str) -> list[Measured]:
    """Each taken for itself in 70 per cent of the cases, and for each other in 30."""
    found = []
    for true, taken in itertools.product(classes, classes):
        cell, value = Quantity(f"confusion[{true} as {taken}]", share=True), 0.7 if true == taken else 0.3
        estimate = Estimate(value, value - 0.1, value + 0.1, 60, 1000, 1.0, "srs", quantity=cell)
        found.append(Measured("confusion matrix", cell, estimate))
    return found


ROBUSTNESS = {"kind": "image", "perturbations": ["zoom", "brightness"]}
FLOOR = {"type": "accuracy_below", "threshold": 0.9, "name": "floor"}


def watched_monitors() -> dict[str, dict[str, Any]]:
    """A monitor that alarms, one that does well, one without rules that estimates errors, and one that is new."""
    return {
        "fresh": monitor(classes=list(DIGITS)),
        "calm": monitor(classes=list(DIGITS), rules=[FLOOR]),
        "sinking": monitor(classes=list(DIGITS), rules=[FLOOR], robustness=ROBUSTNESS),
        "prices": monitor(problem="regression", unit="€"),
    }


def watched_world(folder: Path) -> World:
    """Those monitors with their pasts."""
    monitors = watched_monitors()
    made = World.of(new_opmon_database(folder / "opmon.db"), folder, monitors)
    live_through(
        made.store,
        Past("calm", 40, drop=0.0, accuracy=0.97),
        Past("sinking", 60, drop=0.4),
        Past("prices", 5, classes=(), unit="€", problem="regression", waits=False, rule=None),
    )
    map_rounds(made.store, "sinking", (30, 40, 50))
    return made

"""labelling → estimated: from the labels so far to an estimate, verdicts and events, all in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

from opmon import plugins
from opmon.errors import InputError
from opmon.labels import store as queue
from opmon.labels.store import Answered
from opmon.steps.drawing import draw_next_wave
from opmon.steps.workplace import Workplace
from opmon.store import rounds
from opmon.store.rounds import Revision, Round
from opmon.triggers import outbox
from opmon.types import Estimate, Sample, Verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answers:
    """All tasks of a round with their answers, and the sample they make."""

    tasks: Sequence[Answered]
    sample: Sample
    labels_seen: int

    @property
    def settled(self) -> bool:
        """Whether every task has been spoken of: answered or skipped."""
        return all(task.answer is not None for task in self.tasks)

    @property
    def failures(self) -> list[Answered]:
        wrong = set(self.sample.draw.positions[self.sample.outcomes > 0].tolist())
        return [task for task in self.tasks if task.position in wrong]

    @property
    def returned(self) -> int:
        return sum(task.answer is not None and task.answer.truth is not None for task in self.tasks)


def estimate_round(work: Workplace, round_: Round) -> bool:
    """Estimate from the labels there are; false where there is nothing new to say.

    Final once every task is settled or the deadline is over, provisional before. A closed round is estimated again when
    late labels have come in.
    """
    if round_.draw is None:
        return False  # it was closed without a single input to draw from
    with work.store.read() as connection:
        known = rounds.latest_estimate(connection, round_.id)
        answers = read_answers(connection, round_)
    if answers.settled and round_.state == "labelling" and draw_next_wave(work, round_, answers.sample):
        return True
    over = round_.deadline_at is not None and work.clock() >= round_.deadline_at
    final = answers.settled or over or round_.state == "closed"
    if known is not None and known.labels_seen == answers.labels_seen and (not final or not known.estimate.provisional):
        return False
    if not answers.returned:
        return _nothing_came(work, round_) if final and round_.state != "closed" else False
    try:
        estimate = _estimate(round_, answers, provisional=not final)
    except InputError as exc:
        if not final:
            return False  # too few answers for this design yet
        raise InputError(f"round {round_.number} cannot be estimated: {exc}") from exc
    _save(work, round_, answers, estimate)
    return True


def read_answers(connection: Connection, round_: Round) -> Answers:
    """What the annotators said of a round, joined with its draw."""
    seen = queue.count(connection, round_.id)
    tasks = queue.answers(connection, round_.id)
    draw = rounds.unpack_draw(round_.draw or b"")
    outcome = {task.position: _loss(task, round_.plan["problem"]) for task in tasks}
    outcomes = np.array([outcome.get(int(position), np.nan) for position in draw.positions], dtype=np.float64)
    return Answers(tasks, Sample(draw, outcomes), seen)


def _loss(task: Answered, problem: str) -> float:
    """1 where the model is wrong and 0 where it is right, or the squared error; NaN without an answer."""
    if task.answer is None or task.answer.truth is None:
        return float("nan")
    if problem == "regression":
        return (float(task.answer.truth) - float(task.prediction)) ** 2
    return float(task.answer.truth != task.prediction)


def _estimate(round_: Round, answers: Answers, *, provisional: bool) -> Estimate:
    estimator = plugins.make("estimator", answers.sample.draw.design)
    estimate: Estimate = estimator.estimate(answers.sample, round_.plan["level"])
    return replace(estimate, provisional=provisional)


def _nothing_came(work: Workplace, round_: Round) -> bool:
    with work.write() as connection:
        rounds.update(
            connection,
            round_.id,
            state="closed",
            closed_at=work.clock(),
            problem="no label came before the deadline; a late one will be estimated when it comes",
        )
    return True


def _save(work: Workplace, round_: Round, answers: Answers, estimate: Estimate) -> None:
    now = work.clock()
    with work.write() as connection:
        revision = rounds.add_estimate(
            connection,
            round_.id,
            estimate,
            failures=len(answers.failures),
            labels_seen=answers.labels_seen,
            made_at=now,
        )
        if not estimate.provisional:
            rounds.update(connection, round_.id, state="estimated", problem=None)
            verdicts = _decide(work, connection, round_)
            for verdict in verdicts:
                _raise_event(work, connection, round_, verdict, estimate)
            rounds.add_verdicts(connection, round_.id, revision, verdicts)


def _decide(work: Workplace, connection: Connection, round_: Round) -> list[Verdict]:
    """What every rule says of this model version's rounds up to this one."""
    revisions: list[Revision] = rounds.latest_estimates(connection, work.name, version=round_.model_version)
    history = [r.estimate for r in revisions if r.round_number <= round_.number and not r.estimate.provisional]
    return [rule.plugin.decide(history) for rule in work.settings.rules]


def _raise_event(work: Workplace, connection: Connection, round_: Round, verdict: Verdict, estimate: Estimate) -> None:
    """One event when a rule begins to alarm and one when it recovers, not one a round.

    A late label may change what a rule says of a round long past; that is kept, but nobody is woken up for it.
    """
    number, before = rounds.last_verdict(connection, work.name, round_.model_version, verdict.rule) or (0, None)
    if number > round_.number:
        return
    if verdict.state == "alarm" and before != "alarm":
        kind = "opmon.alarm"
    elif verdict.state == "ok" and before == "alarm":
        kind = "opmon.recovered"
    else:
        return
    body = _event(work, round_, verdict, estimate, kind)
    outbox.add(connection, round_.id, body, work.action_names, work.clock())
    log.warning("%s: %s", kind, verdict.message)


def _event(work: Workplace, round_: Round, verdict: Verdict, estimate: Estimate, kind: str) -> dict[str, Any]:
    run = round_.run_id or ""
    return {
        "id": outbox.event_id(work.name, verdict.rule, round_.model_version, kind, round_.number),
        "type": kind,
        "monitor": work.name,
        "rule": verdict.rule,
        "round": round_.number,
        "at": work.clock().isoformat(),
        "message": verdict.message,
        "threshold": verdict.threshold,
        "model": {"name": round_.model_name, "version": round_.model_version, "uri": round_.model_uri},
        "estimate": {
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "level": estimate.level,
            "n": estimate.n,
            "frame_size": estimate.frame_size,
            "method": estimate.method,
            "response": estimate.response,
        },
        "run_uri": f"runs:/{run}",
        "failures_uri": f"runs:/{run}/failures/failures.parquet",
    }

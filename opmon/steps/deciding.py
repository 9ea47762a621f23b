"""From a final estimate to verdicts and events, in the transaction that saves the estimate.

A round is judged once, when its estimate becomes final. A rule's evidence is kept in its verdict's details and handed
back with the next round of the model version. A label that comes later makes a revision of the estimate: rules on
estimates look again, sequential ones repeat what they said, and nobody is woken up for it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from opmon import plugins
from opmon.config import RuleSettings
from opmon.decisions.case import Case
from opmon.errors import OpmonError
from opmon.labels.store import Answered
from opmon.steps.events import event_of
from opmon.steps.rivals import rival_outcomes
from opmon.steps.workplace import Workplace
from opmon.store import rounds, verdicts
from opmon.store.rounds import Round
from opmon.triggers import outbox
from opmon.triggers.silence import silent_until
from opmon.types import Estimate, Sample, Verdict

log = logging.getLogger(__name__)

ROBUSTNESS_TAG = "opmon.robustness"
"""The tag of a model version that holds its aggregate robustness."""


@dataclass(frozen=True)
class Witness:
    """What rules may ask for and the database does not know: gathered before the transaction."""

    rivals: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """By rule: the outcomes of the draws under the version it compares with."""
    robustness: float | None = None


def hear(work: Workplace, round_: Round, tasks: Sequence[Answered], sample: Sample) -> Witness:
    """Ask for what the configured rules need; what cannot be had leaves its rule without an answer."""
    rivals: dict[str, NDArray[np.float64]] = {}
    robustness = None
    for rule in work.settings.rules:
        address = getattr(rule.plugin, "rival", None)
        try:
            if address is not None:
                found = rival_outcomes(work, round_, tasks, sample, str(address))
                if found is not None:
                    rivals[rule.name] = found
            elif rule.type == "robustness_level":
                robustness = _robustness(work, round_)
        except OpmonError as exc:
            log.warning("rule %s: %s", rule.name, exc)
    return Witness(rivals, robustness)


def decide(
    work: Workplace,
    connection: Connection,
    round_: Round,
    tasks: Sequence[Answered],
    sample: Sample,
    estimate: Estimate,
    revision: int,
    witness: Witness,
) -> None:
    """Keep what every rule says of the round, and the events that follow."""
    found = []
    case = _case(work, connection, round_, tasks, sample, witness)
    for rule in work.settings.rules:
        judged = verdicts.of_round(connection, round_.id, rule.name)
        if judged is not None and hasattr(rule.plugin, "judge") and not hasattr(rule.plugin, "decide"):
            found.append(replace(judged, message=f"{judged.message.removesuffix(_LATE)}{_LATE}"))
            continue
        before = verdicts.newest(connection, work.name, round_.model, rule.name)
        verdict = _judge(rule, case, before.details if before else {}, witness)
        found.append(verdict)
        if judged is None:
            _raise_event(work, connection, round_, rule, verdict, estimate)
    rounds.add_verdicts(connection, round_.id, revision, found)


_LATE = " (labels came late: they correct the estimate, not the evidence)"


def _judge(rule: RuleSettings, case: Case, before: Mapping[str, Any], witness: Witness) -> Verdict:
    """What the rule says; a fault of its own is told and stops nothing else."""
    try:
        if hasattr(rule.plugin, "judge"):
            own = replace(case, before=before, rival=witness.rivals.get(rule.name))
            verdict: Verdict = rule.plugin.judge(own)
        else:
            verdict = rule.plugin.decide(case.estimates)
    except Exception as exc:
        log.exception("rule %s failed", rule.name)
        message = f"the rule failed on this round ({type(exc).__name__}: {exc}); its evidence is unchanged"
        return Verdict(rule.name, "unknown", message, details=dict(before))
    return replace(verdict, rule=rule.name)


def _case(
    work: Workplace,
    connection: Connection,
    round_: Round,
    tasks: Sequence[Answered],
    sample: Sample,
    witness: Witness,
) -> Case:
    found = rounds.latest_estimates(connection, work.name, model=round_.model)
    history = [r.estimate for r in found if r.round_number <= round_.number and not r.estimate.provisional]
    by_position = {task.position: task for task in tasks}
    drawn = [by_position[int(position)] for position in sample.draw.positions]
    estimator = plugins.make("estimator", sample.draw.design)
    names = set(drawn[0].variables) if drawn else set()
    return Case(
        number=round_.number,
        estimates=history,
        sample=sample,
        elapsed=_elapsed(connection, work, round_),
        classes=np.array([task.prediction for task in drawn], dtype=np.str_),
        class_names=tuple(round_.classes or ()),
        variables={name: np.array([task.variables.get(name, np.nan) for task in drawn]) for name in names},
        coefficients=estimator.coefficients(sample) if hasattr(estimator, "coefficients") else None,
        received=round_.received,
        scored=round_.received - (round_.unscorable or 0),
        drift=(round_.drift or {}).get("share"),
        robustness=witness.robustness,
    )


def _elapsed(connection: Connection, work: Workplace, round_: Round) -> timedelta:
    """The production time since the round before of this model version; of the first one, its own."""
    known = rounds.versions(connection, work.name)
    ends = round_.ends_at or round_.opened_at
    before = [
        at for number, (version, at) in known.items() if version == round_.model_version and number < round_.number
    ]
    began = max(before, default=round_.starts_at or ends)
    return max(ends - began, timedelta())


def _robustness(work: Workplace, round_: Round) -> float | None:
    text = work.registry.version_tags(work.model(round_)).get(ROBUSTNESS_TAG)
    try:
        return None if text is None else float(text)
    except ValueError:
        log.warning("the tag %s of %s is no number: %r", ROBUSTNESS_TAG, round_.model_uri, text)
        return None


def _raise_event(
    work: Workplace, connection: Connection, round_: Round, rule: RuleSettings, verdict: Verdict, estimate: Estimate
) -> None:
    """One event when a rule begins to alarm and one when it recovers, not one a round."""
    sequential = hasattr(rule.plugin, "judge") and not hasattr(rule.plugin, "decide")
    newest = verdicts.standing(connection, work.name, round_.model, rule.name)
    if newest is not None and newest.round_number > round_.number and not sequential:
        return  # a round long past changes what is known of it, and wakes nobody
    was, now = newest is not None and newest.alarmed, verdicts.alarmed(verdict)
    if now is None or now == was:
        return
    kind = outbox.ADVICE if not rule.acts else outbox.ALARM if now else outbox.RECOVERED
    body = event_of(work, round_, verdict, estimate, kind, alarmed=now)
    outbox.add(connection, round_.id, body, _deliveries(work, connection, round_, rule, kind), work.clock())
    log.warning("%s: %s", kind, verdict.message)


def _deliveries(
    work: Workplace, connection: Connection, round_: Round, rule: RuleSettings, kind: str
) -> dict[str, datetime]:
    """Which actions hear of it, and from when on: after the rule's cooldown and their own silence."""
    if kind == outbox.ADVICE:
        return {}
    now = work.clock()
    told = {action.name: action for action in work.settings.actions}
    start = now
    if kind == outbox.RECOVERED:
        unheard = outbox.withdraw(connection, work.name, rule.name, round_.model_uri, now)
        told = {name: action for name, action in told.items() if name not in unheard}
    elif rule.cooldown is not None:
        last = outbox.last_alarm(connection, work.name, rule.name)
        start = now if last is None else max(now, last + rule.cooldown)
    return {name: silent_until(action.windows, start) for name, action in told.items()}

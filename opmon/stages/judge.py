"""A rule judges a case, and what follows is an event for the actions; in the caller's transaction."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.config import RuleSettings
from opmon.decisions.case import Case
from opmon.stages.events import event_of
from opmon.stages.toolbox import Toolbox
from opmon.store import outbox, verdicts
from opmon.store.engine import Connection
from opmon.store.rounds import Round
from opmon.triggers.silence import silent_until
from opmon.types import Estimate, Verdict

log = logging.getLogger(__name__)

WITHOUT_ESTIMATE = -1
"""The revision of what rules on counts say of a round that has no estimate."""


def judge_counts(work: Toolbox, connection: Connection, round_: Round, asked: int) -> None:
    """A round is closed without an estimate: rules that only count (``counts = True``) have something to say of it."""
    case = Case(
        round_.number,
        (),
        asked=asked,
        received=round_.received,
        scored=round_.received - (round_.unscorable or 0),
        drift=(round_.drift or {}).get("share"),
    )
    for rule in work.settings.rules:
        if getattr(rule.plugin, "counts", False) and verdicts.of_round(connection, round_.id, rule.name) is None:
            before = verdicts.newest(connection, work.name, round_.model, rule.name)
            verdict = judge(rule, case, before.details if before else {})
            raise_event(work, connection, round_, rule, verdict, None)
            verdicts.add_verdicts(connection, round_.id, WITHOUT_ESTIMATE, [verdict])


def judge(
    rule: RuleSettings, case: Case, before: Mapping[str, Any], rival: NDArray[np.float64] | None = None
) -> Verdict:
    """What the rule says; a fault of its own is told and stops nothing else."""
    try:
        if hasattr(rule.plugin, "judge"):
            own = replace(case, before=before, rival=rival)
            verdict: Verdict = rule.plugin.judge(own)
        else:
            verdict = rule.plugin.decide(case.estimates)
    except Exception as exc:
        log.exception("rule %s failed", rule.name)
        message = f"the rule failed on this round ({type(exc).__name__}: {exc}); its evidence is unchanged"
        return Verdict(rule.name, "unknown", message, details=dict(before))
    return replace(verdict, rule=rule.name)


def raise_event(
    work: Toolbox,
    connection: Connection,
    round_: Round,
    rule: RuleSettings,
    verdict: Verdict,
    estimate: Estimate | None,
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
    log.warning("%s: %s", kind, verdict.message, extra={"opmon_event": body["id"]})


def _deliveries(
    work: Toolbox, connection: Connection, round_: Round, rule: RuleSettings, kind: str
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

"""What every rule says of a round: read, concluded outside any transaction, and written with the events that follow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from opmon.config import RuleSettings
from opmon.decisions.case import Case, carried
from opmon.queries.standing import standing_of
from opmon.stages.chain import Call, Chain, Conclusion, closed, conclude, details_before
from opmon.stages.events import event_of
from opmon.stages.toolbox import Toolbox
from opmon.store import outbox, queue, revisions, rounds, verdicts
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.triggers.silence import silent_until
from opmon.types import Document, Estimate, Verdict

log = logging.getLogger(__name__)

WITHOUT_ESTIMATE = -1
"""The revision of what rules on counts say of a round that has no estimate."""

MOST_RETOLD = 10
"""So many rounds are told again at most because of a label for one before them."""

_KINDS = {"alarm": outbox.ALARM, "recovered": outbox.RECOVERED, "changed": outbox.CHANGED}


@dataclass(frozen=True)
class Chains:
    """What was said of the rounds around one: by each configured rule, and by those that are configured no more."""

    of: Mapping[str, Chain]
    gone: Mapping[str, Chain]


def read_chains(work: Toolbox, connection: Connection, round_: Round) -> Chains:
    configured = [rule.name for rule in work.settings.rules]
    gone = verdicts.rules_before(connection, work.name, round_.model, round_.number) - set(configured)
    of, left = ({name: _chain(connection, round_, name) for name in names} for names in (configured, sorted(gone)))
    return Chains(of, left)


def _chain(connection: Connection, round_: Round, rule: str) -> Chain:
    place = (connection, round_.monitor, round_.model, rule)
    return Chain(
        before=verdicts.last_before(*place, round_.number),
        stood=verdicts.standing(*place, before=round_.number),
        own=verdicts.of_round(*place, round_.number),
        later=verdicts.all_after(*place, round_.number),
    )


def conclusions(
    rules: Sequence[RuleSettings], chains: Chains, number: int, case_for: Callable[[RuleSettings], Case]
) -> list[Conclusion]:
    """What the rules say of the round, each in its chain."""
    found = [
        conclude(rule, chains.of[rule.name], number, lambda before, rule=rule: judge(rule, case_for(rule), before))  # type: ignore[misc]
        for rule in rules
    ]
    over = [closed(name, chain, number) for name, chain in chains.gone.items() if not chain.later]
    return [*found, *(each for each in over if each is not None)]


def looks_back(rule: RuleSettings, chain: Chain) -> int | None:
    """How many of the last estimates the rule is shown; a fault of its own, which stops nothing, leaves it one."""
    try:
        return rule.plugin.looks_back(details_before(rule, chain))
    except Exception:
        log.exception("rule %s failed", rule.name)
        return 1


def judge(rule: RuleSettings, case: Case, before: Document) -> Verdict:
    """What the rule says; a fault of its own is told and stops nothing else."""
    try:
        verdict = rule.plugin.judge(replace(case, before=before))
    except Exception as exc:
        log.exception("rule %s failed", rule.name)
        message = f"the rule failed on this round ({type(exc).__name__}: {exc}); its evidence is unchanged"
        return Verdict(rule.name, "unknown", message, details=carried(before))
    return replace(verdict, rule=rule.name)


def write_conclusions(
    work: Toolbox, connection: Connection, round_: Round, revision: int, found: Sequence[Conclusion]
) -> None:
    """The verdicts and, in the same transaction, the events: neither exists without the other."""
    before = {each.rule: each.state for each in verdicts.latest_verdicts(connection, round_.id)}
    verdicts.add_verdicts(connection, round_.id, revision, [each.verdict for each in found])
    for conclusion in found:
        verdicts.restate(connection, conclusion.restated)
        for call in conclusion.calls:
            _raise(work, connection, round_, call)
    _tell_again(work, connection, round_, found, before)


def _tell_again(
    work: Toolbox, connection: Connection, round_: Round, found: Sequence[Conclusion], before: Mapping[str, str]
) -> None:
    """Later rounds of which a rule says something else now are told again, and with them the last one of the version:
    it says how that stands. Of very many the newest are, and those in which a rule turns.
    """
    restated = {entry.number for each in found for entry, again in each.restated if again.state != entry.verdict.state}
    turned = {call.number for each in found for call in each.calls}
    own = any(before.get(each.verdict.rule, "unknown") != each.verdict.state for each in found)
    last = revisions.newest_estimated(connection, work.name, round_.model)
    numbers = {*sorted(restated)[-MOST_RETOLD:], *turned}
    numbers |= {last} if last is not None and (own or restated) else set()
    for number in sorted(each for each in numbers if each > round_.number):
        later = rounds.get(connection, work.name, number)
        latest = revisions.latest_estimate(connection, later.id)
        gone = later.labels_pruned_at is not None or "artifacts" in (later.pruned or ())
        if latest is None or later.state != RoundState.CLOSED or gone:
            continue
        if queue.count(connection, later.id) == latest.labels_seen:  # else labels of its own are on their way
            rounds.update(connection, later.id, reported=min(later.reported, latest.revision - 1))


def judge_counts(work: Toolbox, round_: Round, asked: int) -> list[Conclusion]:
    """A round is closed without an estimate: rules that only count (``counts = True``) have something to say of it."""
    case = Case(
        round_.number,
        (),
        asked=asked,
        received=round_.received,
        scored=round_.received - (round_.unscorable or 0),
        drift=(round_.drift or {}).get("share"),
    )
    with work.store.read() as connection:
        chains = read_chains(work, connection, round_)
    rules = [rule for rule in work.settings.rules if rule.plugin.counts and chains.of[rule.name].own is None]
    return conclusions(rules, replace(chains, gone={}), round_.number, lambda _: case)


def _raise(work: Toolbox, connection: Connection, judged: Round, call: Call) -> None:
    """One event when a rule begins to alarm and one when that is over, not one a round."""
    round_ = judged if call.number == judged.number else rounds.get(connection, work.name, call.number)
    latest = revisions.latest_estimate(connection, round_.id)
    estimate = None if latest is None else _watched(work, call.verdict.rule, latest)
    kind = _KINDS[call.turn] if call.acts else outbox.ADVICE
    others = [rule for rule in work.settings.watch.acting_rules if rule != call.verdict.rule]
    stands = standing_of(connection, work.name, round_.model, others)
    alarms = [reason.rule for reason in stands.reasons if reason.state == "alarm"]
    body = event_of(work, round_, call.verdict, estimate, kind, state=_STATES[call.turn], alarms=alarms)
    told = _deliveries(work, connection, round_, call.verdict.rule, kind)
    outbox.add(connection, round_.id, body, told, work.clock())
    log.warning("%s: %s", kind, call.verdict.message, extra={"opmon_event": body["id"]})


def _watched(work: Toolbox, name: str, latest: Revision) -> Estimate | None:
    """The estimate that a rule watches: the main one, or one beside it; None where the round has none of that."""
    rule = next((each for each in work.settings.rules if each.name == name), None)
    if rule is None or rule.plugin.watches() is None:
        return latest.estimate
    of = work.settings.watched(rule.plugin.watches()).quantity(work.settings.unit)
    some = (latest.estimate, *(each.estimate for each in latest.further))
    return next((each for each in some if each is not None and each.quantity.same(of)), None)


_STATES = {"alarm": "alarm", "recovered": "ok", "changed": "changed"}


def _deliveries(work: Toolbox, connection: Connection, round_: Round, rule: str, kind: str) -> dict[str, datetime]:
    """Which actions hear of it, and from when on: after the rule's cooldown and their own silence."""
    if kind == outbox.ADVICE:
        return {}
    now = work.clock()
    told = {action.name: action for action in work.settings.actions}
    start = now
    cooldown = _cooldown(work, rule)
    if kind != outbox.ALARM:
        why = "it recovered" if kind == outbox.RECOVERED else "the rule was changed"
        unheard = outbox.withdraw(connection, work.name, rule, round_.model_uri, now, why)
        told = {name: action for name, action in told.items() if name not in unheard}
    elif cooldown is not None:
        last = outbox.last_alarm(connection, work.name, rule, now)
        start = now if last is None else max(now, last + cooldown)
    return {name: silent_until(action.windows, start) for name, action in told.items()}


def _cooldown(work: Toolbox, rule: str) -> timedelta | None:
    return next((each.cooldown for each in work.settings.rules if each.name == rule), None)

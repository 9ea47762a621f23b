"""The verdicts of one rule on one model version, in the order of the rounds: what one more round does to them.

Rounds are labelled in any order, and labels come late; the state of a rule follows the order of the rounds all the
same. That an alarm was raised, or is over, is a fact: a late label for a round before it changes the estimate of that
round and wakes nobody. A late label for a round since then replaces what that round adds to the evidence, and what was
said of the rounds after it is said anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from opmon.config import RuleSettings
from opmon.decisions.case import carried
from opmon.store.verdicts import Entry, alarmed
from opmon.types import Document, Verdict

log = logging.getLogger(__name__)

Turn = Literal["alarm", "recovered", "changed"]

_LATE = " (labels came late: they correct the estimate; what was told stays as it was)"


@dataclass(frozen=True)
class Chain:
    """What a rule has said so far, seen from one round."""

    before: Entry | None
    """Of the last round before it that the rule judged."""
    stood: Entry | None
    """Of the last round before it of which the rule knew something."""
    own: Entry | None
    """Of the round itself, where it was judged before."""
    later: Sequence[Entry] = ()
    """Of the rounds after it."""


@dataclass(frozen=True)
class Call:
    """An event to raise: the rule turns in the round of this number."""

    turn: Turn
    number: int
    verdict: Verdict
    acts: bool


@dataclass(frozen=True)
class Conclusion:
    """What to write: the verdict on the round, those that stand anew, and the events."""

    verdict: Verdict
    restated: Sequence[tuple[Entry, Verdict]] = ()
    calls: Sequence[Call] = ()


def details_before(rule: RuleSettings, chain: Chain) -> Document:
    """What the rule kept with the round before; nothing where it is another version of itself since."""
    goes_on = _Version.of(rule, chain.before).goes_on
    return chain.before.verdict.details if chain.before is not None and goes_on else {}


def conclude(rule: RuleSettings, chain: Chain, number: int, judge: Callable[[Document], Verdict]) -> Conclusion:
    """The round ``number`` in its chain; ``judge`` gives the verdict on it after the details of the one before."""
    version = _Version.of(rule, chain.before)
    stood = bool(version.goes_on and chain.stood and version.is_of(chain.stood) and chain.stood.alarmed)
    runs = all(version.is_of(each) and each.alarmed in (None, stood) for each in (chain.own, *chain.later) if each)
    if chain.own is not None and not runs:
        told = chain.own.verdict
        return Conclusion(replace(told, message=told.message.removesuffix(_LATE) + _LATE))
    verdict = version.stamped(judge(details_before(rule, chain)))
    restated = _restated(rule, version, verdict, chain.later) if runs else []
    if len(restated) < len(chain.later):
        return Conclusion(verdict, restated)
    calls = [*version.closing(rule, chain, number, verdict), *_turns(rule, number, verdict, restated, stood)]
    return Conclusion(version.introduced(verdict), restated, calls)


def closed(rule: str, chain: Chain, number: int) -> Conclusion | None:
    """The end of an alarm whose rule is not configured any more; None where it had none."""
    if chain.before is None or chain.before.verdict.details.get("closed") or not (chain.stood and chain.stood.alarmed):
        return None
    identity = chain.before.verdict.details.get("rule") or {}
    message = "this rule is not configured any more: its alarm is closed as 'rule changed', which is no recovery"
    version = chain.before.verdict.details.get("version", 1)
    verdict = Verdict(rule, "unknown", message, details={"closed": True, "rule": identity, "version": version})
    return Conclusion(verdict, calls=[Call("changed", number, verdict, bool(identity.get("acts", True)))])


def _restated(
    rule: RuleSettings, version: _Version, verdict: Verdict, later: Sequence[Entry]
) -> list[tuple[Entry, Verdict]]:
    """The verdicts on the rounds after, as far as the rule can say them anew."""
    found: list[tuple[Entry, Verdict]] = []
    for entry in later:
        before = verdict.details
        try:
            again = rule.plugin.restate(before, entry.verdict.details)
        except Exception:
            log.exception("rule %s failed on what it had kept of round %d", rule.name, entry.number)
            break
        if again is None and entry.verdict.state != "unknown":
            break
        verdict = version.stamped(again or replace(entry.verdict, details=carried(before)))
        found.append((entry, verdict))
    return found


def _turns(
    rule: RuleSettings, number: int, verdict: Verdict, restated: Sequence[tuple[Entry, Verdict]], stood: bool
) -> list[Call]:
    """The event that follows where the rule stands otherwise after the last round than it did before."""
    now, turn = stood, None
    for at, said in ((number, verdict), *((entry.number, again) for entry, again in restated)):
        found = alarmed(said)
        if found is not None and found != now:
            now, turn = found, Call("alarm" if found else "recovered", at, said, rule.acts)
    return [turn] if turn is not None and now != stood else []


@dataclass(frozen=True)
class _Version:
    """One version of a rule, as a round finds it: with other parameters a rule is another, with a bound of its own."""

    identity: Document
    number: int
    before: Document | None
    """The identity of the version that judged the round before, where it was another one."""

    @classmethod
    def of(cls, rule: RuleSettings, before: Entry | None) -> _Version:
        identity = rule.identity
        if before is None:
            return cls(identity, 1, None)
        details = before.verdict.details
        number = _number(before)
        if details.get("closed") or details.get("rule", identity) != identity:
            return cls(identity, number + 1, details.get("rule") or {})
        return cls(identity, number, None)

    @property
    def goes_on(self) -> bool:
        return self.before is None

    def is_of(self, entry: Entry) -> bool:
        """Whether the verdict is this version's; older opmons did not say whose it is.

        A rule that was changed and changed back is not what it was: its bound, and its alarms, are new.
        """
        details = entry.verdict.details
        same = details.get("rule", self.identity) == self.identity
        return bool(same and int(details.get("version", self.number)) == self.number)

    def stamped(self, verdict: Verdict) -> Verdict:
        return replace(verdict, details={**verdict.details, "rule": dict(self.identity), "version": self.number})

    def introduced(self, verdict: Verdict) -> Verdict:
        """The first verdict of a changed rule says so."""
        if self.goes_on:
            return verdict
        message = f"the rule was changed ({self._difference()}) and {self._anew(verdict)}; {verdict.message}"
        return replace(verdict, message=message)

    def closing(self, rule: RuleSettings, chain: Chain, number: int, verdict: Verdict) -> list[Call]:
        """The end of the alarm that the version before has left."""
        first = chain.own is None and not chain.later
        told = chain.before is not None and chain.before.verdict.details.get("closed")
        if self.before is None or not first or told or chain.stood is None or not chain.stood.alarmed:
            return []
        if chain.before is not None and _number(chain.stood) != _number(chain.before):
            return []  # it is of a version before that one, and was closed when that one began
        message = (
            f"the rule was changed while its alarm stood ({self._difference()}): the alarm is closed as 'rule "
            f"changed', which is no recovery. The rule {self._anew(verdict)}"
        )
        acts = bool(self.before.get("acts", rule.acts))
        return [Call("changed", number, replace(verdict, message=message), acts)]

    def _difference(self) -> str:
        before = self.before or {}
        keys = [key for key in {**before, **self.identity} if before.get(key) != self.identity.get(key)]
        return ", ".join(f"{key} {before.get(key)} → {self.identity.get(key)}" for key in keys) or "configured again"

    def _anew(self, verdict: Verdict) -> str:
        bound = verdict.details.get("bound")
        each = f", and each version has a bound of its own: {bound}" if bound else ""
        return f"begins anew as version {self.number} of this rule{each}"


def _number(entry: Entry) -> int:
    """The how-manyeth version of its rule a verdict is of."""
    return int(entry.verdict.details.get("version", 1))

"""How a model version stands, and why: what its tag in the registry and ``opmon status`` say in one word."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from opmon.store import verdicts
from opmon.store.engine import Connection
from opmon.store.verdicts import Entry
from opmon.types import Verdict, VerdictState

Standing = Literal["healthy", "degraded", "unknown", "unwatched"]


@dataclass(frozen=True)
class ReasonView:
    """How one acting rule stands."""

    rule: str
    state: VerdictState
    """``alarm`` as long as its alarm stands."""
    round: int | None
    """The round of its newest verdict; None if it has judged none."""
    message: str
    """The message of that verdict: the evidence."""


@dataclass(frozen=True)
class StandingView:
    """How a model version stands, in a word, and for which reasons."""

    status: Standing
    reasons: tuple[ReasonView, ...] = ()

    @property
    def why(self) -> str:
        """The reasons that decide, as a sentence."""
        if self.status == "unwatched":
            return "no rule watches it"
        if not self.reasons:
            return "no round has a final estimate yet"
        decisive = {"degraded": "alarm", "healthy": "ok", "unknown": "unknown"}[self.status]
        head = {
            "degraded": "an alarm stands",
            "healthy": "no rule objects",
            "unknown": "its rules know nothing yet",
        }[self.status]
        said = [
            f"{each.rule}{'' if each.round is None else f' in round {each.round}'}: {each.message}"
            for each in self.reasons
            if each.state == decisive
        ]
        return f"{head}; {'; '.join(said)}"


NO_ESTIMATE = StandingView("unknown")
"""How a monitor stands of which no model version has a final estimate."""


def standing_of(
    connection: Connection,
    monitor: str,
    model: tuple[str, str],
    acting_rules: Sequence[str],
    newest: Mapping[str, Entry] | None = None,
) -> StandingView:
    """The standing of a model version that has an estimate; ``acting_rules`` are names.

    ``newest`` holds what rules said of the last round that they judged, as far as that is known already.

    ``degraded`` where a rule's alarm stands, ``unknown`` where there are rules and none of them knows anything yet,
    ``unwatched`` where there are none, else ``healthy``: no rule objects. Rules that only advise have no say in it.
    """
    if not acting_rules:
        return StandingView("unwatched")
    known = newest or {}
    reasons = tuple(_reason(connection, monitor, model, rule, known.get(rule)) for rule in acting_rules)
    states = {reason.state for reason in reasons}
    if "alarm" in states:
        return StandingView("degraded", reasons)
    return StandingView("unknown" if states == {"unknown"} else "healthy", reasons)


def as_told(advising_rules: Collection[str], said: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts, with the alarms of rules that only advise marked as advice: nothing is done about them."""
    return [
        replace(verdict, details={**verdict.details, "advice": True})
        if verdict.state == "alarm" and verdict.rule in advising_rules
        else verdict
        for verdict in said
    ]


def _reason(
    connection: Connection, monitor: str, model: tuple[str, str], rule: str, newest: Entry | None
) -> ReasonView:
    """How the rule stands; an alarm of another version of the rule is over."""
    newest = newest or verdicts.newest(connection, monitor, model, rule)
    if newest is None:
        return ReasonView(rule, "unknown", None, "it has judged no round of this model version yet")
    if newest.alarmed is not None:
        return _as_of(newest, newest.alarmed)
    known = verdicts.standing(connection, monitor, model, rule)
    if known is None or newest.verdict.details.get("rule") != known.verdict.details.get("rule"):
        return _as_of(newest, None)
    return _as_of(known, known.alarmed)


def _as_of(entry: Entry, alarmed: bool | None) -> ReasonView:
    state: VerdictState = "unknown" if alarmed is None else "alarm" if alarmed else "ok"
    return ReasonView(entry.verdict.rule, state, entry.number, entry.verdict.message)

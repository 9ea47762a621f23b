"""How a model version stands: what its tag in the registry and ``opmon status`` say in one word."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from opmon.store import verdicts
from opmon.store.engine import Connection
from opmon.types import Verdict

Standing = Literal["healthy", "degraded", "unknown"]


def standing_of(connection: Connection, monitor: str, model: tuple[str, str], acting_rules: Sequence[str]) -> Standing:
    """The standing of a model version that has an estimate; ``acting_rules`` are names.

    ``degraded`` where a rule's alarm stands, ``unknown`` where there are rules and none of them knows anything yet,
    else ``healthy``: no rule objects. Rules that only advise have no say in it.
    """
    stand = [_alarmed(connection, monitor, model, rule) for rule in acting_rules]
    if any(stand):
        return "degraded"
    return "unknown" if stand and all(each is None for each in stand) else "healthy"


def as_told(advising_rules: Collection[str], said: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts, with the alarms of rules that only advise marked as advice: nothing is done about them."""
    return [
        replace(verdict, details={**verdict.details, "advice": True})
        if verdict.state == "alarm" and verdict.rule in advising_rules
        else verdict
        for verdict in said
    ]


def _alarmed(connection: Connection, monitor: str, model: tuple[str, str], rule: str) -> bool | None:
    """Whether the rule's alarm stands; an alarm of another version of the rule is over."""
    newest = verdicts.newest(connection, monitor, model, rule)
    if newest is None or newest.alarmed is not None:
        return None if newest is None else newest.alarmed
    known = verdicts.standing(connection, monitor, model, rule)
    if known is None or newest.verdict.details.get("rule") != known.verdict.details.get("rule"):
        return None
    return known.alarmed

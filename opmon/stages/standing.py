"""How a model version stands: what its tag in the registry and ``opmon status`` say in one word."""

from __future__ import annotations

from typing import Literal

from opmon.config import MonitorSettings
from opmon.store import verdicts
from opmon.store.engine import Connection

Standing = Literal["healthy", "degraded", "unknown"]


def standing_of(connection: Connection, settings: MonitorSettings, model: tuple[str, str]) -> Standing:
    """The standing of a model version that has an estimate.

    ``degraded`` where a rule's alarm stands, ``unknown`` where there are rules and none of them knows anything yet,
    else ``healthy``: no rule objects. Rules that only advise have no say in it.
    """
    stand = [_alarmed(connection, settings.name, model, rule.name) for rule in settings.rules if rule.acts]
    if any(stand):
        return "degraded"
    return "unknown" if stand and all(each is None for each in stand) else "healthy"


def _alarmed(connection: Connection, monitor: str, model: tuple[str, str], rule: str) -> bool | None:
    """Whether the rule's alarm stands; an alarm of another version of the rule is over."""
    newest = verdicts.newest(connection, monitor, model, rule)
    known = verdicts.standing(connection, monitor, model, rule)
    if newest is None or known is None or newest.verdict.details.get("rule") != known.verdict.details.get("rule"):
        return None
    return known.alarmed

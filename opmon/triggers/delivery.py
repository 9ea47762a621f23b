"""The delivery of events from the outbox, tried until every action has taken them.

Deliveries are tried until the action says yes: at least once, always with the same event id, so that a receiver that
remembers ids sees each event once. After ``ATTEMPTS`` refusals, or one that no retry can help, a delivery is dead.
People are told of one that is tried in vain long before, and can have it tried at once.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from opmon.errors import DeliveryError, OpmonError
from opmon.redaction import redacted
from opmon.store import deliveries, outbox
from opmon.store.deliveries import Delivery
from opmon.store.leases import Lease
from opmon.types import Document
from opmon.waiting import told_as_waiting

log = logging.getLogger(__name__)

ATTEMPTS = 37
"""They take half a week at the least and a week at the most: longer than a weekend in which a token runs out."""
ATTEMPTS_WITHOUT = 9
"""So many where no action of that name is configured: they take two to five hours."""
PATIENCE = 3
"""Failures running after which an action is left alone for this time."""
FIRST_WAIT = timedelta(seconds=5)
LONGEST_WAIT = timedelta(hours=6)


class Acting(Protocol):
    def act(self, event: Document) -> None: ...


def deliver(
    lease: Lease,
    monitor: str,
    actions: Mapping[str, Acting],
    clock: Callable[[], datetime],
    stopping: Callable[[], bool] = lambda: False,
    rule: str | None = None,
) -> tuple[int, int]:
    """Try every delivery that is due once, until told to stop; returns how many were taken and how many were not.

    An action that fails ``PATIENCE`` times running is left alone until the next time, so that a target that hangs does
    not hold up the others. ``rule``: only its events are delivered; without it all but those of the watchdog.
    """
    tried: set[int] = set()
    failed: Counter[str] = Counter()
    taken = 0
    while True:
        with lease.store.read() as connection:
            waiting = [
                delivery for delivery in deliveries.due(connection, monitor, clock(), rule) if delivery.id not in tried
            ]
        now = next((delivery for delivery in waiting if failed[delivery.action] < PATIENCE), None)
        if now is None or stopping():
            return taken, len(tried) - taken + len(waiting)
        tried.add(now.id)
        values = _attempt(now, actions.get(now.action), clock)
        delivered = values["state"] == "delivered"
        taken += delivered
        failed[now.action] = failed[now.action] + 1 if values["state"] == "pending" else 0
        with lease.write() as connection:
            deliveries.settle(connection, now.id, **values)


def wait_after(attempts: int, retry_after: float | None = None) -> timedelta:
    """Exponential backoff with full jitter above a half; never sooner than the target asked for."""
    longest = min(FIRST_WAIT * 3.0 ** min(attempts - 1, 20), LONGEST_WAIT)
    wait = longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
    return max(wait, min(timedelta(seconds=retry_after or 0), outbox.LONGEST_WAIT))


def _attempt(delivery: Delivery, action: Acting | None, clock: Callable[[], datetime]) -> dict[str, object]:
    attempts = delivery.attempts + 1
    if action is None:
        return _missing(delivery, attempts, clock)
    try:
        with told_as_waiting(f"the action {delivery.action}"):
            action.act(delivery.body)
    except DeliveryError as exc:
        final, problem, retry_after = exc.final, str(exc), exc.retry_after
    except OpmonError as exc:
        final, problem, retry_after = False, str(exc), None
    except Exception as exc:
        log.exception("action %s failed on event %s", delivery.action, delivery.event_id)
        final, problem, retry_after = False, f"{type(exc).__name__}: {exc}", None
    else:
        return {"state": "delivered", "attempts": attempts, "delivered_at": clock(), "problem": None}
    log.warning("action %s did not take event %s: %s", delivery.action, delivery.event_id, problem)
    problem = redacted(problem)  # it is kept, and shown to all who may see the event
    return _in_vain(problem, attempts, final or attempts >= ATTEMPTS, clock() + wait_after(attempts, retry_after))


def _missing(delivery: Delivery, attempts: int, clock: Callable[[], datetime]) -> dict[str, object]:
    """No action of that name is configured; another process may know it, which has read a newer configuration."""
    problem = f"no action {delivery.action!r} is configured; put it back, and replay the event where it was given up"
    given_up = attempts >= ATTEMPTS_WITHOUT and delivery.problem == problem
    return _in_vain(problem, attempts, given_up, clock() + wait_after(attempts))


def _in_vain(problem: str, attempts: int, dead: bool, next_at: datetime) -> dict[str, object]:
    return {"state": "dead" if dead else "pending", "attempts": attempts, "next_at": next_at, "problem": problem}

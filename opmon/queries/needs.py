"""What needs a person in a monitor, most pressing first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from opmon.queries.standing import StandingView
from opmon.store import outbox
from opmon.store.cycles import Ended
from opmon.store.engine import Connection
from opmon.store.handing import Standing as Provider
from opmon.store.outbox import Undelivered
from opmon.store.rounds import Unfinished
from opmon.store.set_aside import SetAside
from opmon.types import Document
from opmon.wording import counted, spans

NeedKind = Literal["silent", "hangs", "cycle", "inputs", "alarm", "delivery", "provider", "round", "full", "labels"]


@dataclass(frozen=True)
class NeedView:
    """Something that does not go on by itself."""

    kind: NeedKind
    message: str
    """The problem, and what to do about it."""
    round: int | None = None
    event: str | None = None
    problem: str = ""
    """The problem alone, for whoever is shown a button where the message names a command; empty: the message."""


def alarms_of(connection: Connection, standings: Mapping[str, StandingView]) -> dict[str, dict[str, Document]]:
    """By monitor and rule the events of the alarms that stand."""
    pairs = [
        (monitor, reason.rule)
        for monitor, stands in standings.items()
        for reason in stands.reasons
        if reason.state == "alarm"
    ]
    found: dict[str, dict[str, Document]] = {monitor: {} for monitor in standings}
    for (monitor, rule), event in outbox.newest_alarms(connection, pairs).items():
        found[monitor][rule] = event
    return found


def needs_of(
    stands: StandingView,
    unfinished: Sequence[Unfinished],
    undelivered: Sequence[Undelivered],
    ended: Ended | None,
    provider: Provider | None,
    max_open: int | None = None,
    aside: Sequence[SetAside] = (),
    silence: str | None = None,
    alarms: Mapping[str, Document] | None = None,
    hangs: str | None = None,
) -> tuple[NeedView, ...]:
    """What a monitor needs, from what is known of it."""
    kept_out = None if ended is None else ended.problem
    if provider is not None and kept_out == provider.problem:
        kept_out = None  # said below, with since when
    needs = [NeedView("silent", f"silent: {silence}")] if silence else []
    needs += [NeedView("hangs", hangs)] if hangs and not silence else []
    needs += [NeedView("cycle", kept_out)] if kept_out else []
    needs += [
        need
        for reason in stands.reasons
        if reason.state == "alarm"
        for need in _alarm(reason.rule, (alarms or {}).get(reason.rule))
    ]
    needs += [NeedView("inputs", _set_aside(aside))] if aside else []
    needs += [_undelivered(each) for each in undelivered]
    if provider is not None:
        needs.append(NeedView("provider", _failing(provider)))
    needs += [NeedView("round", each.problem, round=each.number) for each in unfinished if each.problem]
    waiting = [each for each in unfinished if each.open]
    full = max_open is not None and sum(each.open for each in waiting) >= max_open
    needs += [NeedView("full", _full(waiting, max_open or 0))] if full else []
    return tuple(needs + ([NeedView("labels", _unlabelled(waiting))] if waiting else []))


def _set_aside(aside: Sequence[SetAside]) -> str:
    are = "is" if len(aside) == 1 else "are"
    parts = f"{counted(len(aside), 'part')} of the log cannot be read and {are} set aside"
    return f"{parts}, first {aside[0].part}: {aside[0].why.rstrip('.')}. For all: opmon inputs list"


def _failing(provider: Provider) -> str:
    since = "" if provider.failing_since is None else f" since {provider.failing_since:%Y-%m-%d %H:%M} UTC"
    times = counted(provider.failures, "time")
    return f"the label provider has failed {times}{since}, the last time so: {provider.problem}"


def _full(waiting: Sequence[Unfinished], max_open: int) -> str:
    tasks = counted(sum(each.open for each in waiting), "task")
    return (
        f"{tasks} wait; until there are fewer than {max_open} (labels.max_open) new inputs gather for one larger round"
    )


def _unlabelled(waiting: Sequence[Unfinished]) -> str:
    count, numbers = sum(each.open for each in waiting), spans(each.number for each in waiting)
    tasks = f"{counted(count, 'task')} of round{'s' * (len(waiting) > 1)} {numbers}"
    return f"{tasks} wait{'s' * (count == 1)} for annotators"


def _alarm(rule: str, event: Document | None) -> list[NeedView]:
    """The alarm that stands, unless somebody deals with it."""
    if event is None or event["acknowledged_at"] is not None:
        return []
    problem = f"nobody has taken on the alarm of {rule}"
    message = f"{problem}; whoever does: opmon events ack {event['id']}"
    return [NeedView("alarm", message, round=event["body"]["round"], event=event["id"], problem=problem)]


def _undelivered(delivery: Undelivered) -> NeedView:
    why = f" ({delivery.problem.rstrip('.')})" if delivery.problem else ""
    problem, again = f"{delivery.action} was not told of an event{why}", "to try again"
    if delivery.next_at is not None:
        problem += f"; tried {delivery.attempts} times, again at {delivery.next_at:%Y-%m-%d %H:%M} UTC"
        again = "to try at once"
    message = f"{problem}; {again}: opmon events replay {delivery.event_id}"
    return NeedView("delivery", message, event=delivery.event_id, problem=problem)

"""Why a monitor is silent, as far as the processes that work on monitors tell."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from opmon.queries.pulse import Pulse
from opmon.store.workers import Worker


def why_silent(pulse: Pulse, workers: Sequence[Worker], now: datetime) -> str:
    """What is known of a monitor whose cycles do not end, in a sentence that names the next step."""
    last = "" if pulse.ended is None else f" since {pulse.ended.at:%Y-%m-%d %H:%M} UTC"
    return f"no cycle has ended{last}: {_why(pulse.monitor, workers, now)}"


def _why(monitor: str, workers: Sequence[Worker], now: datetime) -> str:
    alive = [worker for worker in workers if worker.is_alive(now)]
    for worker in alive:
        at = worker.busy.get(monitor)
        if at is not None:
            stage = f"at {at.stage}" if at.stage else "at work"
            return f"{worker.process} has been {stage} since {at.moved:%H:%M:%S} UTC; look at what that waits for"
    for worker in workers:
        if monitor in worker.busy:
            return (
                f"{worker.process}, which was at it, was last heard of at {worker.seen_at:%Y-%m-%d %H:%M} UTC; "
                "is it stopped, or its machine?"
            )
    if not alive:
        heard = f" was last heard of at {workers[0].seen_at:%Y-%m-%d %H:%M} UTC" if workers else " is there"
        return f"no worker{heard}; start opmon serve"
    return "its cycles end before they come to their end; the log of opmon serve tells why"

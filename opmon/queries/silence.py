"""Why a monitor is silent, as far as the processes that work on monitors tell."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from opmon.queries.pulse import Pulse
from opmon.store.workers import Busy, Worker

LONG = timedelta(seconds=60)
"""What has not got on for so long is told, though the monitor is not silent yet."""


def what_hangs(monitor: str, workers: Sequence[Worker], now: datetime) -> str | None:
    """Which process is at the monitor and has not got on for long, and what it is at; None where none is."""
    for worker in workers:
        at = worker.busy.get(monitor)
        if at is not None and worker.is_alive(now) and now - at.moved > LONG:
            return _at(worker, at)
    return None


def why_silent(pulse: Pulse, workers: Sequence[Worker], now: datetime) -> str:
    """What is known of a monitor whose cycles do not end, in a sentence that names the next step."""
    last = "" if pulse.ended is None else f" since {pulse.ended.at:%Y-%m-%d %H:%M} UTC"
    return f"no cycle has ended{last}: {_why(pulse.monitor, workers, now)}"


def _why(monitor: str, workers: Sequence[Worker], now: datetime) -> str:
    alive = [worker for worker in workers if worker.is_alive(now)]
    for worker in alive:
        at = worker.busy.get(monitor)
        if at is not None:
            return _at(worker, at)
    for worker in workers:
        if monitor in worker.busy:
            return (
                f"{worker.process}, which was at it, was last heard of at {worker.seen_at:%Y-%m-%d %H:%M} UTC; "
                "is it stopped, or its machine?"
            )
    if not alive and workers:
        last = f"{workers[0].seen_at:%Y-%m-%d %H:%M} UTC"
        return f"no worker is there, and the last one was heard of at {last}; start opmon serve"
    if not alive:
        return "no worker is there; start opmon serve"
    first = min(alive, key=lambda worker: worker.started_at)
    if now - first.started_at < LONG:
        began = f"{first.started_at:%Y-%m-%d %H:%M} UTC"
        return f"{first.process} began only at {began}, and no worker that is there was there before"
    return "its cycles end before they come to their end; the log of opmon serve tells why"


def _at(worker: Worker, at: Busy) -> str:
    stage = f"at {at.stage}{',' * (', ' in at.stage)}" if at.stage else "at work"
    return f"{worker.process} has been {stage} since {at.moved:%H:%M:%S} UTC; look at what that waits for"

"""Answers that come while others are being written are written together, in one transaction.

A transaction costs a wait for the disk and some queries, however many answers it holds: twenty annotators who answer at
once would otherwise wait in line for each other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from opmon.errors import UnavailableError
from opmon.labels.queue import Answer, Known, LabelQueue

log = logging.getLogger(__name__)

_MOST = 100
"""Calls whose answers are written together."""

Refusals: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class _Call:
    annotator: str
    answers: Sequence[Answer]
    known: Known
    done: asyncio.Future[Refusals]


@dataclass
class Together:
    """Records answers for one event loop."""

    queue: LabelQueue
    _own: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1), repr=False)
    """A thread that calls of other kinds cannot take."""
    _waiting: list[_Call] = field(default_factory=list, repr=False)
    _work: asyncio.Task[None] | None = field(default=None, repr=False)

    async def answer(self, annotator: str, answers: Sequence[Answer], known: Known | None = None) -> Refusals:
        """By key, why some answers cannot be taken; all others are in the database when this returns."""
        call = _Call(annotator, answers, known or Known(), asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        if self._work is None:
            self._work = asyncio.create_task(self._write())
        return await call.done

    async def _write(self) -> None:
        while self._waiting:
            calls, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            await self._write_calls(calls)
        self._work = None

    async def _write_calls(self, calls: Sequence[_Call]) -> None:
        """All at once; where that fails, but for a database that is down, each alone, so that a fault is one call's."""
        try:
            said = [(each.annotator, each.answers) for each in calls]
            known = {each.annotator: each.known for each in calls}
            told = await run_sync(self.queue.answer_together, said, known, limiter=self._own)
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is for whoever waits for the answer
            if len(calls) > 1 and not isinstance(exc, UnavailableError):
                log.warning("answers could not be written together, and are written one by one: %s", exc)
                for call in calls:
                    await self._write_calls([call])
                return
            for call in calls:
                if not call.done.done():
                    call.done.set_exception(exc)
            return
        for call, refusals in zip(calls, told, strict=True):
            if not call.done.done():
                call.done.set_result(refusals)

"""Calls to MLflow, each with a limit on its time.

MLflow's client bounds each read from a socket, not a call: a server that gives a byte now and then is waited for
without end, and its retries multiply whatever limit there is. So every call runs in a thread of its own and is waited
for only so long; it may still arrive at the server afterwards, which is why all that opmon asks of MLflow may be
repeated. A server that has kept callers waiting twice running is left alone for a while: see
:mod:`opmon.outgoing.breaker`.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from opmon.errors import OpmonError, RegistryUnavailable
from opmon.outgoing import overdue
from opmon.outgoing.breaker import Breaker, breakers
from opmon.registry.translation import is_answer
from opmon.waiting import TOLD_AFTER, start, told_as_waiting

if TYPE_CHECKING:
    from mlflow import MlflowClient

_POLL = 0.25
"""How soon a caller who waits notices, in seconds, that opmon is stopping."""
_KEPT_WAITING = 1.0
"""A failure that took so many seconds is one of a server that does not answer."""
_SLOWEST = 50_000
"""Bytes in a second below which an upload counts as stalled."""

_until: ContextVar[float] = ContextVar("opmon_mlflow_until", default=math.inf)
"""When nothing more is waited for by whoever set it."""

_MOST_LEFT = 64
"""Calls that nobody waits for any more, and still hang, that there may be."""

_left: set[threading.Thread] = set()


def left_behind() -> bool:
    """Whether an abandoned call still runs: MLflow's own threads would hold up an exit."""
    return _hanging() > 0


def _hanging() -> int:
    return sum(thread.is_alive() for thread in list(_left))


P = ParamSpec("P")
T = TypeVar("T")


class Calls:
    """How one MLflow server is called."""

    def __init__(self, where: Callable[[], str]) -> None:
        self._where = where
        self._given_up = threading.Event()
        self._questions, self._transfers = Breaker(), Breaker()
        breakers["registry"], breakers["registry files"] = self._questions, self._transfers

    def give_up(self) -> None:
        """Wait for no call any more: opmon is stopping."""
        self._given_up.set()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """For the time of a ``with``, wait at most so long in all, from now on; what arrives in time goes on."""
        token = _until.set(min(_until.get(), time.monotonic() + seconds))
        try:
            yield
        finally:
            _until.reset(token)

    def ask(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``function`` and wait for :func:`patience` at most."""
        deadline = time.monotonic() + patience()
        return self._run(self._questions, lambda: function(*args, **kwargs), lambda: self._is_over(deadline))

    def upload(self, function: Callable[[], T], size: int) -> T:
        """Call what sends ``size`` bytes: the more there are, the longer it may take."""
        more = size / _SLOWEST
        deadline = time.monotonic() + patience() + more
        return self._run(self._transfers, function, lambda: self._is_over(deadline, more))

    def download(self, function: Callable[[], T], arrived: Callable[[], int]) -> T:
        """Call what fetches files: it may take as long as it likes while ``arrived`` bytes become more.

        After the time that is given by :meth:`within` they must have come faster than one byte now and then.
        """
        seen, begun = 0, time.monotonic()
        deadline = begun + patience()

        def is_over() -> bool:
            nonlocal seen, deadline
            now = time.monotonic()
            if now > _until.get() and (now - begun) * _SLOWEST > arrived():
                self._require_time()
            if now <= deadline:
                return False
            before, seen, deadline = seen, arrived(), time.monotonic() + patience()
            return seen <= before

        return self._run(self._transfers, function, is_over)

    def _run(self, breaker: Breaker, function: Callable[[], T], is_over: Callable[[], bool]) -> T:
        self._require_time()
        self._require_hope(breaker)
        begun = time.monotonic()
        try:
            result = self._wait(start(function, "mlflow-call"), is_over)
        except OpmonError:
            breaker.left()
            raise
        except Exception as exc:
            if is_answer(exc):
                breaker.answered()
            elif time.monotonic() - begun >= _KEPT_WAITING:
                breaker.failed()
            else:
                breaker.left()
            raise
        except BaseException:
            breaker.left()
            raise
        breaker.answered()
        return result

    def _is_over(self, deadline: float, more: float = 0.0) -> bool:
        self._require_time(more)
        return time.monotonic() > deadline

    def _require_time(self, more: float = 0.0) -> None:
        if time.monotonic() > _until.get() + more:
            raise RegistryUnavailable(
                f"MLflow at {self._where()} is so slow that the time for it is over. Nothing is lost: the next cycle "
                f"goes on; check how busy the server is."
            )

    def _require_hope(self, breaker: Breaker) -> None:
        if self._given_up.is_set():
            raise RegistryUnavailable("MLflow is not asked any more: opmon is stopping")
        if _hanging() >= _MOST_LEFT:
            raise RegistryUnavailable(
                f"{_MOST_LEFT} calls to MLflow still hang, the last ones at {self._where()}: no further one is begun "
                f"until some have ended. Nothing is lost; restart the MLflow server."
            )
        if breaker.enter():
            raise RegistryUnavailable(
                f"MLflow at {self._where()} did not answer several times running and is left alone until "
                f"{breaker.again_at:%H:%M:%S} UTC. Nothing is lost; check that the server runs and how busy it is."
            )

    def _wait(self, call: tuple[Future[T], threading.Thread], is_over: Callable[[], bool]) -> T:
        future, thread = call
        begun, telling = time.monotonic(), ExitStack()
        told = False
        try:
            while not wait((future,), _POLL).done:
                if self._given_up.is_set():
                    raise RegistryUnavailable("MLflow is not waited for any more: opmon is stopping")
                if not told and time.monotonic() - begun > TOLD_AFTER:
                    told = True
                    telling.enter_context(told_as_waiting(f"MLflow at {self._where()}", math.inf))
                if is_over():
                    overdue.count("registry")
                    raise TimeoutError(f"no answer, or no whole one, within {time.monotonic() - begun:.0f} s")
        finally:
            telling.close()
            _left.difference_update({old for old in list(_left) if not old.is_alive()})
            if not future.done():
                _left.add(thread)
        return future.result()


class Bounded:
    """MLflow's client, each of whose methods is asked as :class:`Calls` says."""

    def __init__(self, client: MlflowClient, calls: Calls) -> None:
        self.unbounded, self._calls = client, calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.unbounded, name)
        return lambda *args, **kwargs: self._calls.ask(method, *args, **kwargs)


def patience() -> float:
    """For how many seconds an answer is waited for: three times what MLflow itself waits for a piece of it."""
    try:
        return 3.0 * max(1.0, float(os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"]))
    except (KeyError, ValueError):
        return 60.0

"""Measures of one's own are computed in processes of their own while a service runs.

All monitors of a process share one interpreter, so a function that computes without end, or just for long, would slow
down every other monitor. Each of these processes computes one number at a time. One that is not asked for a while ends.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from opmon.measures.function import FunctionFailed, computed_by
from opmon.outgoing import overdue
from opmon.scoring.flavor.process import piped
from opmon.types import Floats
from opmon.types.labelled import Labelled
from opmon.wording import counted

_START = (
    "import runpy, sys; script = sys.argv.pop(1); sys.path[:] = sys.argv[3:]; "
    "runpy.run_path(script, run_name='__main__')"
)
"""What the parent imports from, it imports from; not the folder of its own script."""
_SCRIPT = Path(__file__).with_name("_calculator.py")
_LOOK = 0.5
"""Seconds after which a caller that is told to give up notices it."""


@dataclass(eq=False)
class Calculator:
    """One process, and what it was told last."""

    process: subprocess.Popen[bytes]
    asked: Connection
    answers: Connection
    rows: Labelled | None = None
    used: float = 0.0

    @classmethod
    def start(cls) -> Calculator:
        try:
            process, to, answer = piped([sys.executable, "-c", _START, str(_SCRIPT)], sys.path)
        except OSError as exc:
            raise FunctionFailed(f"no process could be started for it: {exc.strerror}") from exc
        return cls(process, Connection(to, readable=False), Connection(answer, writable=False))

    def compute(self, path: str, rows: Labelled, weights: Floats, seconds: float) -> float:
        """What the function gives; the process is ended where nobody waits for it any more."""
        try:
            known = (rows.truth, rows.predicted, rows.scores) if rows is not self.rows else None
            self.asked.send((path, known, weights))
            self.rows = rows
            until = time.monotonic() + seconds
            while not self.answers.poll(_LOOK):
                if time.monotonic() > until:
                    overdue.count("measure")
                    self.end()
                    raise FunctionFailed(f"it gave no answer within {counted(round(seconds), 'second')}")
            number, failure = self.answers.recv()
        except (EOFError, OSError) as exc:
            why = self._why_ended()
            self.end()
            raise FunctionFailed(why) from exc
        if number is None:
            raise FunctionFailed(failure)
        return float(number)

    def end(self) -> None:
        """End the process and what it started."""
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.asked.close()
        self.answers.close()

    def _why_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        code = self.process.poll()
        how = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
        return f"its process ended{how}"


@dataclass(eq=False)
class Calculators:
    """All that this process has started."""

    seconds: float = 600.0
    """How long one number may take."""
    idle: float = 20.0
    """Seconds after which one that is not asked ends."""
    _free: list[Calculator] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _watch: threading.Timer | None = None

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Have them compute all measures of one's own meanwhile."""
        with computed_by(self.compute):
            try:
                yield
            finally:
                self._end(math.inf)

    def compute(self, path: str, rows: Labelled, weights: Floats) -> float:
        """What the function at ``path`` gives; FunctionFailed says why there is nothing."""
        calculator = self._take(rows) or Calculator.start()
        try:
            number = calculator.compute(path, rows, weights, self.seconds)
        except FunctionFailed:
            self._give_back(calculator)
            raise
        except BaseException:
            calculator.end()
            raise
        self._give_back(calculator)
        return number

    def _take(self, rows: Labelled) -> Calculator | None:
        """A free one, rather one that knows these rows."""
        with self._lock:
            chosen = next((each for each in self._free if each.rows is rows), self._free[-1] if self._free else None)
            if chosen is not None:
                self._free.remove(chosen)
            return chosen

    def _give_back(self, calculator: Calculator) -> None:
        if calculator.process.poll() is not None:
            return
        with self._lock:
            calculator.used = time.monotonic()
            self._free.append(calculator)
            self._look_later()

    def _look_later(self) -> None:
        if self._watch is None:
            self._watch = threading.Timer(self.idle, self._end_idle)
            self._watch.daemon = True
            self._watch.start()

    def _end_idle(self) -> None:
        self._end(time.monotonic() - self.idle / 2)
        with self._lock:
            self._watch = None
            if self._free:
                self._look_later()

    def _end(self, before: float) -> None:
        """End those that were last asked before that."""
        with self._lock:
            old = [each for each in self._free if each.used <= before]
            self._free = [each for each in self._free if each.used > before]
        for each in old:
            each.end()

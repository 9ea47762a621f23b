"""The judge ``command``: a program that reads inputs and writes answers, one JSON object a line."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, ClassVar

from opmon.abc import Judge, Opinion, Question
from opmon.ceiling import lift
from opmon.errors import InputError, UnavailableError
from opmon.judges._answers import opinion_of
from opmon.outgoing import overdue
from opmon.printed import last_words
from opmon.private import umask_of_user
from opmon.types import Guide
from opmon.waiting import told_as_waiting

LONGEST_LINE = 64 * 1024
"""The most bytes of an answer."""
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR")


@dataclass(frozen=True)
class CommandJudge(Judge):
    """Starts ``command`` and writes it ``{"key": ..., "input": {...}}`` for each input, one line each.

    It answers each with a line ``{"key": ..., "answer": "cat"}``, or, better, with how likely each class is: ``{"key":
    ..., "scores": {"cat": 0.9, "dog": 0.1}}``; with neither it could not tell. Lines may come in any order, and count
    as soon as they come. What may be answered is in the environment, as ``OPMON_GUIDE`` (JSON). There is no shell. A
    program that gives no answer for ``timeout`` seconds, or writes more than it may, is killed with all that it
    started, and the rest is asked again later. It sees ``PATH``, ``HOME``, ``LANG``, ``TMPDIR`` and what
    ``pass_environment`` names.
    """

    most: ClassVar[int | None] = 2000
    local_paths: ClassVar[tuple[str, ...]] = ("folder",)

    command: tuple[str, ...]
    """The program and its arguments; no shell reads them."""
    timeout: float = 60.0
    """Seconds without an answer after which it is killed."""
    folder: str | None = None
    """The folder that it runs in."""
    pass_environment: tuple[str, ...] = ()
    """The environment variables that it sees, besides the usual ones."""

    def __post_init__(self) -> None:
        given: object = self.command
        if not isinstance(given, list | tuple) or not given or not all(isinstance(part, str) for part in given):
            raise InputError(f"command must be a list, the program and its arguments; got {self.command!r}")
        if isinstance(self.timeout, bool) or not (math.isfinite(self.timeout) and 0 < self.timeout <= 3600):
            raise InputError(f"timeout must be a number of seconds above 0 and at most 3600; got {self.timeout!r}")
        for name in ("command", "pass_environment"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def answer(self, questions: Sequence[Question], guide: Guide) -> Iterator[Opinion]:
        if not questions:
            return
        with tempfile.TemporaryFile() as printed:
            process = self._start(guide, printed)
            try:
                yield from self._heard(process, questions, guide, printed)
            finally:
                _kill(process)

    def _start(self, guide: Guide, printed: IO[bytes]) -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in (*_KEPT, *self.pass_environment) if name in os.environ}
        environment["OPMON_GUIDE"] = json.dumps(asdict(guide), default=str)
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own program, without a shell
                list(self.command),
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                start_new_session=True,
                umask=umask_of_user(),
            )
        except (OSError, ValueError) as exc:
            raise UnavailableError(f"the judge {self.command[0]} cannot be started: {exc}") from exc
        lift(process.pid)
        return process

    def _heard(
        self, process: subprocess.Popen[bytes], questions: Sequence[Question], guide: Guide, printed: IO[bytes]
    ) -> Iterator[Opinion]:
        threading.Thread(target=_feed, args=(process, questions), name="opmon-judge", daemon=True).start()
        waiting = {question.key for question in questions}
        patience = _Patience(self.timeout)
        for line in self._lines(process, len(questions), patience):
            try:
                said = json.loads(line)
            except (ValueError, RecursionError):
                continue  # something that it printed
            key = said.get("key") if isinstance(said, dict) else None
            if isinstance(key, str) and key in waiting:
                waiting.remove(key)
                patience.begin()
                yield opinion_of(key, said, guide)
            if not waiting:
                return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        code = process.poll()
        raise UnavailableError(
            f"the judge {self.command[0]} ended ({'still open' if code is None else f'exit code {code}'}) with "
            f"{len(waiting)} of {len(questions)} inputs unanswered{_said(printed)}"
        )

    def _lines(self, process: subprocess.Popen[bytes], asked: int, patience: _Patience) -> Iterator[bytes]:
        """What it writes, line by line, within its limits of time and of bytes."""
        assert process.stdout is not None
        rest, read = b"", 0
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                with told_as_waiting(f"the judge {self.command[0]}", patience.left):
                    heard = selector.select(patience.left)
                if not heard:
                    overdue.count("judge")
                    raise UnavailableError(
                        f"the judge {self.command[0]} gave no answer for {self.timeout:g} s and was killed"
                    )
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    break
                read += len(chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > LONGEST_LINE or read > LONGEST_LINE * (asked + 1):
                    raise UnavailableError(
                        f"the judge {self.command[0]} wrote more than {LONGEST_LINE:,} bytes for an answer, and was "
                        f"killed"
                    )
                yield from lines
        if rest:
            yield rest


class _Patience:
    """How long an answer is waited for; other lines do not count."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begin()

    def begin(self) -> None:
        """An answer has come: the next one is waited for."""
        self.until = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        return max(self.until - time.monotonic(), 0.0)


def _feed(process: subprocess.Popen[bytes], questions: Sequence[Question]) -> None:
    """Write the questions; one that reads no more has ended, which is told where its answers are read."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError):
        for question in questions:
            line = {"key": question.key, "input": dict(question.payload)}
            process.stdin.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        process.stdin.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and all that it started."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stdin):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _said(printed: IO[bytes]) -> str:
    text = last_words(printed)
    return f": {text}" if text else ""

"""The action that starts a program."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import IO

from opmon.abc import Action
from opmon.ceiling import lift
from opmon.errors import DeliveryError, InputError
from opmon.outgoing import overdue
from opmon.printed import last_words
from opmon.private import umask_of_user
from opmon.triggers._environment import variables
from opmon.types import Document
from opmon.waiting import told_as_waiting


@dataclass(frozen=True)
class Command(Action):
    """Starts ``argv`` with the event in its environment; delivered is what ends with exit code 0.

    There is no shell: ``argv`` is the program and its arguments, passed on as they are, and nothing of the event is
    put into them. The event is in ``OPMON_EVENT`` (JSON) and its parts in ``OPMON_EVENT_ID``, ``OPMON_EVENT_TYPE``,
    ``OPMON_MODEL_URI``, ``OPMON_QUANTITY``, ``OPMON_ESTIMATE`` and so on. A program that runs longer than ``timeout``
    seconds is killed with all that it started, and tried again later. Nothing else is done for the monitor while it
    runs: hand what takes long to a queue, or to the action ``mlflow_project``. Of opmon's own environment it sees
    ``PATH``, ``HOME``, ``LANG``, ``TMPDIR`` and what ``pass_environment`` names. The program may be started again with
    the same ``OPMON_EVENT_ID``: it must do its work once.

    ``on`` names the types of events that start it: alarms alone unless said otherwise.
    """

    argv: tuple[str, ...]
    """The program and its arguments; no shell reads them."""
    timeout: float = 60.0
    """Seconds after which it is killed and counts as failed."""
    folder: str | None = None
    """The folder that it runs in."""
    pass_environment: tuple[str, ...] = ()
    """The environment variables that it sees, besides the usual ones."""
    on: tuple[str, ...] = ("opmon.alarm",)
    """The types of events that it is run for."""

    def __post_init__(self) -> None:
        given: object = self.argv
        if not isinstance(given, list | tuple) or not given or not all(isinstance(part, str) for part in given):
            raise InputError(
                f"argv must be a list, the program and its arguments; got {self.argv!r}. There is no shell."
            )
        if not self.argv[0].strip() or any("\0" in part for part in self.argv):
            raise InputError("argv must begin with the program and hold no zero bytes")
        if isinstance(self.timeout, bool) or not (math.isfinite(self.timeout) and 0 < self.timeout <= 3600):
            raise InputError(f"timeout must be a number of seconds above 0 and at most 3600; got {self.timeout!r}")
        for name in ("argv", "pass_environment", "on"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def act(self, event: Document) -> None:
        """Run the program to its end; :class:`DeliveryError` where it fails."""
        if event["type"] not in self.on:
            return
        with tempfile.TemporaryFile() as printed:
            process = self._start(event, printed)
            try:
                with told_as_waiting(f"the command {self.argv[0]}", self.timeout):
                    code = process.wait(self.timeout)
            except subprocess.TimeoutExpired as exc:
                _kill(process)
                overdue.count("command")
                raise DeliveryError(f"{self.argv[0]} was killed after {self.timeout:g} s") from exc
            except BaseException:
                _kill(process)
                raise
            if code != 0:
                raise DeliveryError(f"{self.argv[0]} ended with {_code(code)}{_said(printed)}")

    def _start(self, event: Document, printed: IO[bytes]) -> subprocess.Popen[bytes]:
        kept = ("PATH", "HOME", "LANG", "TMPDIR", *self.pass_environment)
        environment = {name: os.environ[name] for name in kept if name in os.environ} | variables(event)
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own program, without a shell
                list(self.argv),
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=umask_of_user(),
            )
        except (OSError, ValueError) as exc:
            raise DeliveryError(f"{self.argv[0]} cannot be started: {exc}") from exc
        lift(process.pid)
        return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and all that it started."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _said(printed: IO[bytes]) -> str:
    text = last_words(printed)
    return f": {text}" if text else ""

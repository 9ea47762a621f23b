"""A worker process: asked within a time limit, killed when it hangs, and started again after that."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pyarrow as pa

from opmon.ceiling import lift
from opmon.errors import ModelError
from opmon.outgoing import overdue
from opmon.redaction import redacted
from opmon.types import Document, Json
from opmon.waiting import ends_within
from opmon.wording import counted

_LENGTH = struct.Struct("<q")
_START = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
"""Not by its name: the folder of the script would stand first where the model looks for modules."""
_SAID = 2000
"""The last bytes that a worker printed which are searched for the reason of its end."""


_LOADING = 300.0
_PRINTED = 1 << 20
"""The most bytes of what it printed that are kept between two answers."""


class WorkerFailed(Exception):
    """The worker gave no answer: it died, hung, or had no memory left. It is to be started again."""


class ModelFailed(Exception):
    """The model's own code raised an error for this batch; the worker lives."""


def piped(
    command: Sequence[str], arguments: Sequence[str], printed: IO[bytes] | None = None
) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start a process that is told, between its command and its arguments, where requests come from and answers go.

    Gives it, the descriptor for requests, and the one for answers. What it prints goes to ``printed``, else to where
    this process prints.
    """
    request, to = os.pipe()
    answer, back = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - running the user's own code is what is asked for
            [*command, str(request), str(back), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            pass_fds=(request, back),
            start_new_session=True,  # what it starts is killed with it
        )
    except OSError:
        os.close(to)
        os.close(answer)
        raise
    finally:
        os.close(request)
        os.close(back)
    return process, to, answer


@dataclass(eq=False)
class Worker:
    """One process that runs one model, started when it is first asked."""

    python: str
    script: Path
    """The script that serves the model; see :class:`~opmon.abc.Runnable`."""
    model: Path
    timeout: float = 300.0
    """Seconds for one batch; loading the model may take longer."""
    memory: int | None = None
    """Bytes that the model may take beside what its libraries do."""
    process: subprocess.Popen[bytes] | None = None
    told: Document = field(default_factory=dict)
    """The facts that the model gave of itself when it was loaded."""
    _to: IO[bytes] | None = None
    _from: IO[bytes] | None = None
    _printed: IO[bytes] | None = None
    _late: float | None = None
    """The time limit that was over, where one was."""

    def start(self) -> Document:
        """Load the model, where that is not done, and return the facts that it gives of itself."""
        if self.process is not None and self.process.poll() is None:
            return self.told
        self.stop()
        self._printed = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - as long as the process
        given = [self.python, "-c", _START, str(self.script)], [str(self.model), str(self.memory or 0)]
        try:
            self.process, to, answer = piped(*given, self._printed)
        except OSError as exc:
            raise ModelError(f"{self.python} cannot be started: {exc.strerror}. Correct scoring.env") from exc
        lift(self.process.pid)
        self._to, self._from = os.fdopen(to, "wb"), os.fdopen(answer, "rb")
        try:
            with self._within(max(_LOADING, 4 * self.timeout)):
                self.told, _ = self._receive()
        except WorkerFailed as exc:
            raise ModelError(f"the model was not loaded: {exc}") from exc
        if "error" in self.told:
            self.stop()
            raise ModelError(
                f"the model was not loaded: {self.told['error']}. Install what its requirements.txt names, or set "
                f"scoring.env to a python that has it, or to uv"
            )
        return self.told

    def send(self, rows: bytes | memoryview, header: Mapping[str, Json]) -> None:
        """Send a batch, an Arrow stream, to be answered; :meth:`answer` waits for that."""
        self.start()
        assert self._to is not None
        line = json.dumps(header).encode()
        try:
            with self._within(self.timeout):
                for part in (_LENGTH.pack(len(line)), line, _LENGTH.pack(len(rows)), rows):
                    self._to.write(part)
                self._to.flush()
        except OSError as exc:
            raise self._ended() from exc

    def answer(self) -> tuple[Document, pa.Table]:
        """The model's answers to the batch that was sent."""
        with self._within(self.timeout):
            header, body = self._receive()
        self._forget()
        if header.get("memory"):
            self.stop()
            raise WorkerFailed(f"the model ran out of memory ({header['error']})")
        if "error" in header:
            raise ModelFailed(header["error"])
        with pa.ipc.open_stream(pa.BufferReader(body)) as reader:
            return header, reader.read_all()

    def stop(self) -> None:
        """End the process and whatever it started."""
        if self.process is not None:
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for stream in (self._to, self._from, self._printed):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self.process = self._to = self._from = self._printed = None

    def __del__(self) -> None:
        with suppress(Exception):
            self.stop()

    @contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """Kill the process where the block takes longer: whoever reads or writes then comes to the end of a pipe."""
        process, self._late = self.process, None

        def kill() -> None:
            self._late = seconds
            overdue.count("model")
            if process is not None:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(seconds, kill)
        timer.daemon = True
        timer.start()
        try:
            with ends_within(seconds):
                yield
        finally:
            timer.cancel()

    def _receive(self) -> tuple[Document, bytes]:
        header = json.loads(self._part())
        return header, self._part()

    def _part(self) -> bytes:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        assert self._from is not None
        try:
            data = self._from.read(count)
        except OSError as exc:
            raise self._ended() from exc
        if len(data) < count:
            raise self._ended()
        return data

    def _ended(self) -> WorkerFailed:
        """End the process, and return the reason why there is no answer."""
        process, late, last = self.process, self._late, self._last_words()
        code = None
        if process is not None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        self.stop()
        if late is not None:
            return WorkerFailed(f"it gave no answer within {counted(round(late), 'second')} (scoring.timeout)")
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return WorkerFailed(f"its process ended ({how}){f': {last}' if last else ''}")

    def _forget(self) -> None:
        """Drop what was printed, so that a model that prints without end does not fill the disk."""
        if self._printed is not None and os.fstat(self._printed.fileno()).st_size > _PRINTED:
            self._printed.truncate(0)

    def _last_words(self) -> str:
        """The last line that the process printed."""
        if self._printed is None:
            return ""
        try:
            size = self._printed.seek(0, os.SEEK_END)
            self._printed.seek(max(0, size - _SAID))
            lines = self._printed.read().decode(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return redacted(lines[-1])[:200] if lines else ""

"""The most memory that a service may ask for: what asks for more is refused, and the kernel need not kill anybody.

Linux gives memory that is not there, and kills a process when it is used. So a model that asks for more than there is
would end the service with all of its monitors. Here the process's own limit (``RLIMIT_DATA``: private memory that can
be written to) is kept at what the machine, or the control group of a container, has left. What asks for more gets an
error, which is that of one monitor. Address space that CUDA reserves does not count, nor do files that are mapped.

The limit is that of all threads. So that the others are not refused what they need, models are stopped sooner: see
:meth:`Ceiling.is_near`. Programs that the service starts have no such limit: :func:`lift`.
"""

from __future__ import annotations

import contextlib
import errno
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opmon.errors import UnavailableError

_LEAST, _MOST, _SHARE = 32 << 20, 1 << 30, 16
"""With less left models stop: a sixteenth of all there is, within bounds. What asks for the last quarter is refused."""
_THREAD, _PATIENCE, _LOOK = 32 << 20, 10.0, 0.01
"""More than what a thread takes to begin, and how long one waits for that."""
_FILES = {"max": ("memory.max", "memory.limit_in_bytes"), "now": ("memory.current", "memory.usage_in_bytes")}
"""What version 2 and version 1 of control groups call them."""
_CACHED = ("inactive_file", "active_file", "slab_reclaimable")
"""What the kernel takes back where memory is short."""


@dataclass
class Ceiling:
    """The limit of this process."""

    proc: Path = Path("/proc")
    groups: Path = Path("/sys/fs/cgroup")
    set_to: int | None = None
    """The limit; None where there is none."""
    _before: int = -1
    """The limit that the process came with; negative for none."""

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the limit meanwhile; without one where the system has none, or does not tell what there is."""
        if not sys.platform.startswith("linux"):
            yield
            return
        import resource

        self._before = resource.getrlimit(resource.RLIMIT_DATA)[0]
        self._set()
        threading.Thread.start = _start_with_room  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            threading.Thread.start = _start  # type: ignore[method-assign]
            self.set_to = None
            with contextlib.suppress(OSError, ValueError):
                _limit(self._before)

    def renew(self) -> None:
        """Set the limit that is held to what there is now."""
        if self.set_to is not None:
            self._set()

    def _set(self) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            left, spare = self.left(), self.spare()
            wanted = self._taken() + max(left - spare // 4, left // 2)
            _limit(wanted if self._before < 0 else min(wanted, self._before))
            self.set_to = wanted

    def is_near(self) -> bool:
        """Whether so little is left that models have to stop; never where there is no limit. It is set anew before."""
        if self.set_to is None:
            return False
        self._set()
        try:
            return self.left() < self.spare()
        except (OSError, ValueError, KeyError):
            return False

    def wait_for_room(self) -> None:
        """Wait until there is room for another thread, but not for ever."""
        until = time.monotonic() + _PATIENCE
        while not self._has_room() and time.monotonic() < until:
            time.sleep(_LOOK)

    def _has_room(self) -> bool:
        for try_again in (True, False):
            with contextlib.suppress(OSError, ValueError, KeyError):
                if self.set_to is None or self.set_to - self._taken() > _THREAD:
                    return True
            if try_again:
                self.renew()
        return False

    def left(self) -> int:
        """The bytes that the machine has left, or the narrowest control group around this process."""
        machine = _numbers(self.proc / "meminfo", 1024)
        swap = machine.get("SwapFree", 0)
        return min([machine["MemAvailable"] + swap, *(_left_in(group, swap) for group in self._limited())])

    def spare(self) -> int:
        """The bytes that are to stay free."""
        everything = [_numbers(self.proc / "meminfo", 1024)["MemTotal"]]
        everything += [_first(group, "max") for group in self._limited()]
        return max(_LEAST, min(min(everything) // _SHARE, _MOST))

    def _taken(self) -> int:
        return _numbers(self.proc / "self" / "status", 1024)["VmData"]

    def _limited(self) -> Iterator[Path]:
        """The control groups around this process that have a limit."""
        for line in (self.proc / "self" / "cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds and "memory" not in kinds.split(","):
                continue
            top = self.groups / "memory" if kinds else self.groups
            own = top / path.strip("/")  # in a container it may be told by a path that is not there
            yield from (group for group in (own, *own.parents) if group.is_relative_to(top) and _first(group, "max"))


def _left_in(group: Path, swap: int) -> int:
    known = _numbers(group / "memory.stat", 1)
    cached = sum(known.get(f"total_{name}", known.get(name, 0)) for name in _CACHED)
    more = 0
    with contextlib.suppress(OSError, ValueError):  # of version 2 alone
        used, most = ((group / f"memory.swap.{what}").read_text().strip() for what in ("current", "max"))
        more = swap if most == "max" else max(0, min(swap, int(most) - int(used)))
    return max(0, _first(group, "max") - _first(group, "now") + cached + more)


def _first(group: Path, what: str) -> int:
    """The number in the file that there is; 0 for no limit."""
    for name in _FILES[what]:
        with contextlib.suppress(OSError):
            said = (group / name).read_text().strip()
            return 0 if said == "max" or int(said) >= 1 << 60 else int(said)
    return 0


def _numbers(path: Path, unit: int) -> dict[str, int]:
    pairs = (line.replace(":", " ").split()[:2] for line in path.read_text().splitlines())
    return {pair[0]: int(pair[1]) * unit for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


_start = threading.Thread.start


def _start_with_room(thread: threading.Thread) -> None:
    """Begin a thread when there is memory for it.

    In Python one that is refused memory before it says that it is there leaves whoever began it waiting for ever. It is
    so before any code of the thread runs, which a trace or an initialiser would be, and most threads are those of
    libraries: so it stands in place of the method of the standard library while the limit is held, and no longer. A
    limit that is set once cannot do: what other programs take is not known before.
    """
    ceiling.wait_for_room()
    _start(thread)


def _limit(size: int, pid: int = 0) -> None:
    import resource

    hard = resource.prlimit(pid, resource.RLIMIT_DATA)[1]
    resource.prlimit(pid, resource.RLIMIT_DATA, (size if size >= 0 else hard, hard))


def shortage(exc: BaseException) -> UnavailableError | None:
    """The error to raise for one that comes of memory that was refused; None where it is something else.

    Libraries wrap what happened: the errors that led to this one count.
    """
    cause: BaseException | None = exc
    while cause is not None:
        refused = isinstance(cause, OSError) and cause.errno == errno.ENOMEM
        no_thread = isinstance(cause, RuntimeError) and "start new thread" in str(cause)
        if refused or no_thread or isinstance(cause, MemoryError):
            return UnavailableError(
                "there was no memory left. Nothing is lost, and it is tried again; if that goes on, look in the log "
                "for a model that takes too much, or give opmon more memory"
            )
        cause = cause.__cause__ or cause.__context__
    return None


def lift(pid: int) -> None:
    """Let a program that this process has started have what it asks for: it is no part of the service."""
    if ceiling.set_to is not None:
        with contextlib.suppress(OSError, ValueError):  # it may have ended
            _limit(ceiling._before, pid)


ceiling = Ceiling()
"""That of this process."""

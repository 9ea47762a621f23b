"""A monitor in whose cycles process after process ends is left alone, and is told with the process."""

from __future__ import annotations

import os
import signal
import socket
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from opmon.queries.monitors import monitor_view
from opmon.service.scheduler import Service
from opmon.store import cycles
from opmon.store.engine import open_store
from opmon.store.leases import hold
from tests.forked import forks
from tests.web.world import World, monitor


@pytest.fixture
def service(sqlite: str, tmp_path: Path) -> Service:
    return Service(World.of(sqlite, tmp_path, {"digits": monitor(schedule={"every": "1m"})}).settings)


def _work(url: str, ready: str) -> None:
    with hold(open_store(url), "digits"):
        Path(ready).touch()
        time.sleep(600)


def killed_at_work(service: Service, ready: Path) -> str:
    """A process that is killed in the middle of its work, and the next one that has the monitor after it."""
    process = forks().Process(target=_work, args=(service.settings.database.get_secret_value(), str(ready)))
    process.start()
    while not ready.exists():
        time.sleep(0.02)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    ready.unlink()
    service.monitors["digits"].prune(really=False)
    return f"process {process.pid} on {socket.gethostname()}"


def last(service: Service) -> cycles.Ended:
    with service.store.read() as connection:
        return cycles.last(connection, ["digits"])["digits"]


def wanted(service: Service) -> bool:
    """Whether the monitor is begun where another process kept its run from beginning, the strongest reason there is."""
    asked: list[str] = []
    service.crew.want = lambda name, *, open_new: asked.append(name)  # type: ignore[method-assign]
    service._owed.add("digits")
    service.attend()
    service.timetable()
    service.table._schedules["digits"].next_at = service.monotonic() - 1  # type: ignore[attr-defined]
    service.look()
    return bool(asked)


def test_process_after_process(service: Service, tmp_path: Path) -> None:
    for times in (1, 2):
        process = killed_at_work(service, tmp_path / "ready")
        assert (last(service).killed, last(service).failures) == (times, times)
        assert wanted(service)
    process = killed_at_work(service, tmp_path / "ready")
    assert not wanted(service)
    assert (last(service).problem or "").startswith(f"{process} ended, or stood still, in the middle of its work")
    with service.store.read() as connection:
        view = monitor_view(connection, service.settings.monitor("digits").watch, datetime.now(UTC), shown=1)
    assert any(process in need.message for need in view.needs)
    service.clock = lambda: datetime.now(UTC) + timedelta(minutes=11)
    assert wanted(service)
    with service.store.write() as connection:
        cycles.record(connection, "digits", cycles.End(datetime.now(UTC), succeeded=True, failed=False))
    assert (last(service).killed, last(service).problem) == (0, None)
    assert last(service).count == 4

"""The service: no scheduled run is lost, no monitor overlaps with itself, and it stops when told."""

from __future__ import annotations

import http.server
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest

from opmon.config import Settings
from opmon.service.scheduler import Service
from opmon.store import rounds


class SlowTarget(http.server.BaseHTTPRequestHandler):
    """Takes a webhook and thinks until it is let go."""

    arrived, let_go = threading.Event(), threading.Event()

    def do_POST(self) -> None:
        type(self).arrived.set()
        type(self).let_go.wait(30)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def target() -> Iterator[str]:
    SlowTarget.arrived.clear()
    SlowTarget.let_go.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowTarget)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    SlowTarget.let_go.set()
    server.shutdown()
    server.server_close()


def configuration(workbench: Any, tmp_path: Path, target: str) -> dict[str, Any]:
    return dict(
        workbench.configuration(
            f"sqlite:///{tmp_path / 'opmon.db'}",
            rules=[{"type": "accuracy_below", "threshold": 0.999, "name": "floor", "certainty": "estimate"}],
            actions=[{"type": "webhook", "url": target, "allow": ["127.0.0.1"], "timeout": 30}],
            schedule={"every": "1h"},
        )
    )


def alarm_ready(workbench: Any, tmp_path: Path, target: str) -> Settings:
    """Everything is labelled, and what comes next is an alarm that the target takes its time over."""
    settings = Settings.from_mapping(configuration(workbench, tmp_path, target), workbench.folder)
    service = Service(settings)
    workbench.write_window()
    service.tick(workbench.name)
    workbench.answer(service.monitors[workbench.name], wrong=0.5)
    return settings


def test_a_scheduled_run_waits_for_a_delivery_and_is_not_lost(workbench: Any, tmp_path: Path, target: str) -> None:
    service = Service(alarm_ready(workbench, tmp_path, target))
    attending = threading.Thread(target=service.attend)
    attending.start()
    assert SlowTarget.arrived.wait(30)
    workbench.write_window()
    ticking = threading.Thread(target=service.tick, args=(workbench.name,))
    ticking.start()
    time.sleep(0.3)
    SlowTarget.let_go.set()
    attending.join(30)
    ticking.join(30)
    with service.monitors[workbench.name].store.read() as connection:
        assert rounds.count(connection, workbench.name) == 2


def test_a_second_signal_ends_at_once(workbench: Any, tmp_path: Path, target: str) -> None:
    import yaml

    alarm_ready(workbench, tmp_path, target)
    path = tmp_path / "opmon.yaml"
    path.write_text(yaml.safe_dump(configuration(workbench, tmp_path, target)))
    process = subprocess.Popen([sys.executable, "-m", "opmon", "serve", "-c", str(path)], stderr=subprocess.PIPE)
    try:
        assert SlowTarget.arrived.wait(60)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
        assert time.monotonic() - begun < 5
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("schedule", "last", "due"),
    [
        ({"every": "1h"}, None, timedelta()),
        ({"every": "1h"}, timedelta(hours=-5), timedelta()),
        ({"every": "1h"}, timedelta(minutes=-20), timedelta(minutes=40)),
        ({"cron": "0 15 * * *"}, None, timedelta(hours=3)),
        ({"cron": "0 15 * * *"}, timedelta(days=-2), timedelta()),
        ({"cron": "0 15 * * *"}, timedelta(hours=-1), timedelta(hours=3)),
    ],
)
def test_what_was_missed_is_caught_up_once(
    workbench: Any, tmp_path: Path, clock: Any, schedule: dict[str, str], last: timedelta | None, due: timedelta
) -> None:
    from opmon.service.scheduler import trigger_of
    from opmon.store import ticks

    plain = workbench.configuration(f"sqlite:///{tmp_path / 'opmon.db'}", schedule=schedule)
    service = Service(Settings.from_mapping(plain, workbench.folder), clock)
    monitor = service.monitors[workbench.name]
    if last is not None:
        with monitor.store.write() as connection:
            ticks.record(connection, workbench.name, clock() + last)
    first = service._first_time(workbench.name, trigger_of(monitor.settings.schedule))
    assert abs(first.astimezone(UTC) - (clock() + due)) < timedelta(seconds=1)

"""A monitor whose cycles do not end is told by whoever lives, with the reason, once; and again when they end."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from opmon.logs.place import within
from opmon.queries.monitors import monitor_view
from opmon.service.scheduler import Service
from opmon.store import cycles, outbox, readiness, ticks, workers
from opmon.store.leases import hold
from opmon.store.workers import Busy, Worker
from opmon.triggers.command import Command
from tests.patience import until
from tests.web.world import World, monitor


class Told(http.server.BaseHTTPRequestHandler):
    """Takes webhooks, and keeps what they say."""

    heard: list[dict[str, Any]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).heard.append(json.loads(body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def target() -> Iterator[str]:
    Told.heard = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Told)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


@pytest.fixture
def service(sqlite: str, tmp_path: Path, target: str) -> Service:
    hook = {"type": "webhook", "url": target, "allow": ["127.0.0.1"]}
    own = monitor(schedule={"every": "10m", "give_up_after": "20m"}, actions=[hook, {"type": "registry_tag"}])
    return Service(World.of(sqlite, tmp_path, {"digits": own}).settings)


def ended(service: Service, minutes_ago: float) -> None:
    at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    with service.store.write() as connection:
        ticks.claim(connection, "digits", at, None)
        cycles.record(connection, "digits", cycles.End(at, succeeded=True, failed=False))


def needs(service: Service) -> list[str]:
    with service.store.read() as connection:
        view = monitor_view(connection, service.settings.monitor("digits").watch, datetime.now(UTC), shown=1)
    return [need.message for need in view.needs if need.kind == "silent"]


def died(service: Service, minutes_ago: float) -> None:
    """A worker that began then, and did not leave in order."""
    at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    with service.store.write() as connection:
        workers.say(connection, Worker("dead", "process 6 on box", "worker", "1", at, at, {}, {}))


def test_after_a_pause_cycles_have_time_to_end_before_a_monitor_is_called_silent(service: Service) -> None:
    ended(service, 45)
    service.watchdog.look()
    assert Told.heard == []
    service.watchdog.started_at -= timedelta(minutes=11)
    service.watchdog.look()
    assert [each["type"] for each in Told.heard] == ["opmon.silent"]


def test_workers_that_die_again_and_again_cost_no_time(service: Service) -> None:
    ended(service, 45)
    died(service, 44)
    service.watchdog.look()
    assert [each["type"] for each in Told.heard] == ["opmon.silent"]


def test_silence_is_told_once_though_another_holds_the_monitor(service: Service) -> None:
    service.watchdog.started_at -= timedelta(hours=1)
    ended(service, 15)
    service.watchdog.look()
    assert (Told.heard, needs(service)) == ([], [])
    ended(service, 45)
    with hold(service.store, "digits"):  # it hangs, and goes on renewing its lease
        service.watchdog.look()
        service.watchdog.look()
    (told,) = Told.heard
    assert (told["type"], told["data"]["rule"], told["data"]["round"]) == ("opmon.silent", "monitor_silent", None)
    assert "no worker is there; start opmon serve" in told["data"]["message"]
    assert len(needs(service)) == 1
    ended(service, 0)
    service.watchdog.look()
    assert [each["type"] for each in Told.heard] == ["opmon.silent", "opmon.heard"]
    assert needs(service) == []
    with service.store.read() as connection:
        assert readiness.monitors_with_work(connection, datetime.now(UTC)) == set()


def test_a_clock_that_was_ahead_for_a_while_is_told_once(service: Service) -> None:
    """Six cycles end while the event that it wrote is yet to come; a real silence is told then, too."""
    ahead = timedelta(hours=6)
    service.watchdog.started_at -= timedelta(hours=1)
    for minutes_ago in (70, 60, 50, 40, 30, 20):
        ended(service, minutes_ago)
        service.watchdog.clock = lambda: datetime.now(UTC) + ahead
        if minutes_ago == 70:
            service.watchdog.look()
        service.watchdog.clock = lambda: datetime.now(UTC) - timedelta(minutes=minutes_ago)  # noqa: B023
        service.watchdog.look()
    assert [each["type"] for each in Told.heard] == ["opmon.silent", "opmon.heard"]
    assert told_of(service) == ["opmon.silent", "opmon.heard"]
    service.watchdog.clock = lambda: datetime.now(UTC) + timedelta(minutes=15)
    service.watchdog.look()
    assert told_of(service) == ["opmon.silent", "opmon.heard", "opmon.silent"]


def told_of(service: Service) -> list[str]:
    """The types of the events, in the order in which they were written."""
    with service.store.read() as connection:
        return [event["type"] for event in reversed(outbox.listing(connection, "digits"))]


def test_a_worker_that_has_just_begun_is_not_told_as_one_whose_cycles_fail(service: Service) -> None:
    """After a night in which nothing ran, the first worker finds that all were silent."""
    ended(service, 45)
    now = datetime.now(UTC)
    with service.store.write() as connection:
        workers.say(connection, Worker("a", "process 7 on box", "worker", "1", now, now, {}, {}))
    assert "process 7 on box began only at" in needs(service)[0]
    long_there = Worker("a", "process 7 on box", "worker", "1", now - timedelta(hours=1), now, {}, {})
    with service.store.write() as connection:
        workers.say(connection, long_there)
    assert "its cycles end before they come to their end" in needs(service)[0]


def test_the_reason_is_what_a_worker_is_at(service: Service) -> None:
    ended(service, 45)
    now = datetime.now(UTC)
    at = Busy("scoring of round 5", now, now)
    said = Worker("a", "process 7 on box", "worker", "1", now, now, {"digits": at}, {})
    with service.store.write() as connection:
        workers.say(connection, said)
    assert f"process 7 on box has been at scoring of round 5 since {now:%H:%M:%S} UTC" in needs(service)[0]
    with service.store.write() as connection:
        old = Worker(**{**vars_of(said), "seen_at": now - timedelta(minutes=5)})
        workers.say(connection, old)
    assert "process 7 on box, which was at it, was last heard of at" in needs(service)[0]


def vars_of(worker: Worker) -> dict[str, Any]:
    return {name: getattr(worker, name) for name in Worker.__dataclass_fields__}


def test_a_monitor_that_no_service_begins_is_not_watched(service: Service) -> None:
    with service.store.write() as connection:
        at = datetime.now(UTC) - timedelta(hours=5)
        cycles.record(connection, "digits", cycles.End(at, succeeded=True, failed=False))
    assert needs(service) == []


def test_a_beat_tells_what_takes_long(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opmon.service.watchdog.BUSY_SECONDS", 0.0)
    with service.attention.on("digits"), within(monitor="digits", stage="scoring", round=3):
        service.watchdog.beat()
    with service.store.read() as connection:
        (said,) = workers.known(connection)
    assert said.busy["digits"].stage == "scoring of round 3"
    service.watchdog.leave()
    with service.store.read() as connection:
        assert workers.known(connection) == []


@contextmanager
def hanging(service: Service, now: list[float]) -> Iterator[None]:
    """A cycle of digits that does not get beyond its beginning: whatever it waits for."""
    hangs, let_go = threading.Event(), threading.Event()
    service.attention._monotonic = service.crew._monotonic = lambda: now[0]

    class Hanging:
        def __call__(self, *_: object) -> bool:
            hangs.set()
            let_go.wait(60)
            return False

    service.table.claim = lambda name, **_: Hanging()  # type: ignore[method-assign]
    service.crew.want("digits", open_new=True)
    assert hangs.wait(60)
    try:
        yield
    finally:
        let_go.set()


def test_a_cycle_in_which_nothing_moves_is_given_up_and_begun_anew(service: Service) -> None:
    now, old = [0.0], service.monitors["digits"]
    with hanging(service, now):
        now[0] = 19 * 60.0
        service.give_up_stalled()
        assert service.crew.busy() == {"digits"}
        now[0] = 21 * 60.0
        service.give_up_stalled()
        assert (old.given_up, service.monitors["digits"].given_up) == (True, False)
        assert (service.crew.busy(), service.crew.hanging()) == (set(), 1)


def test_it_is_given_up_though_the_clock_went_back_meanwhile(service: Service) -> None:
    now, old = [0.0], service.monitors["digits"]
    with hanging(service, now):
        service.clock = service.attention._clock = lambda: datetime.now(UTC) - timedelta(days=1)
        now[0] = 10 * 60.0
        assert service.stuck().keys() == {"digits"}
        now[0] = 21 * 60.0
        service.give_up_stalled()
        assert (old.given_up, service.crew.hanging()) == (True, 1)


def test_what_has_just_begun_is_not_stuck_though_the_clock_went_ahead(service: Service) -> None:
    now = [0.0]
    with hanging(service, now):
        service.clock = service.attention._clock = lambda: datetime.now(UTC) + timedelta(days=1)
        now[0] = 5.0
        assert service.stuck() == {}


def test_a_command_may_run_for_as_long_as_its_timeout_says(service: Service, tmp_path: Path) -> None:
    now, goes_on = [0.0], tmp_path / "goes on"
    service.attention._monotonic = service.crew._monotonic = lambda: now[0]
    goes_on.touch()
    script = f"while [ -e '{goes_on}' ]; do sleep 0.05; done"
    command, taken = Command(("sh", "-c", script), timeout=3600.0), list[int]()

    def deliver(name: str, open_new: bool) -> None:
        with service.attention.on(name), within(stage="delivering events"):
            command.act({"id": "1", "type": "opmon.alarm"})
            taken.append(1)

    service._at_work["digits"] = service.monitors["digits"]
    service.crew._work = deliver
    service.crew.want("digits", open_new=True)
    until(lambda: service.attention.waits("digits"))
    now[0] = 21 * 60.0
    service.give_up_stalled()
    assert (service.crew.busy(), service.monitors["digits"].given_up) == ({"digits"}, False)
    goes_on.unlink()
    until(lambda: taken == [1])


@pytest.mark.parametrize("stays", [True, False])
def test_a_cycle_ends_as_it_began_though_its_monitor_was_changed_or_removed(service: Service, stays: bool) -> None:
    now, old = [0.0], service.monitors["digits"]
    with hanging(service, now):
        other = old.settings.model_copy(update={"seed": 7})
        service.take(service.settings.model_copy(update={"monitors": {"digits": other} if stays else {}}))
        now[0] = 19 * 60.0
        service.give_up_stalled()
        assert service.crew.busy() == {"digits"}
        now[0] = 21 * 60.0
        service.give_up_stalled()
        assert (old.given_up, [each.given_up for each in service.monitors.values()]) == (True, [False] * stays)
        assert (service.crew.hanging(), service._owed) == (1, {"digits"} if stays else set())

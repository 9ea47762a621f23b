"""The service: no scheduled run is lost, none delays another, and it stops when told, whatever hangs."""

from __future__ import annotations

import contextlib
import http.server
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from opmon import monitor
from opmon.config import Settings
from opmon.outgoing.breaker import Breaker
from opmon.service import scheduler
from opmon.service.rests import LEASE_REST, LONGEST_REST
from opmon.service.scheduler import Service
from opmon.store import readiness, rounds, ticks
from opmon.store._connections import POOL
from opmon.store.engine import connect, open_store
from opmon.store.leases import hold
from tests.patience import LONGEST
from tests.store.test_trouble import few_connections


class SlowTarget(http.server.BaseHTTPRequestHandler):
    """Takes a webhook and thinks until it is let go."""

    arrived, let_go = threading.Event(), threading.Event()

    def do_POST(self) -> None:
        type(self).arrived.set()
        type(self).let_go.wait(60)
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


def configuration(workbench: Any, database: str, target: str, **changes: Any) -> dict[str, Any]:
    return dict(
        workbench.configuration(
            database,
            rules=[{"type": "accuracy_below", "threshold": 0.999, "name": "floor", "certainty": "estimate"}],
            actions=[{"type": "webhook", "url": target, "allow": ["127.0.0.1"], "timeout": 60}],
            **{"schedule": {"every": "1h"}} | changes,
        )
    )


def alarm_ready(workbench: Any, plain: dict[str, Any]) -> Service:
    """Everything is labelled, and what comes next is an alarm that the target takes its time over."""
    service = Service(Settings.from_mapping(plain, workbench.folder))
    workbench.write_window()
    service.work(workbench.name, True)
    workbench.answer(service.monitors[workbench.name], wrong=0.5)
    return service


def opened(service: Service, name: str) -> int:
    with service.store.read() as connection:
        return rounds.count(connection, name)


# --- monitors side by side --------------------------------------------------------------------------------------------


def test_a_scheduled_run_waits_for_a_delivery_and_is_not_lost(workbench: Any, sqlite: str, target: str) -> None:
    service = alarm_ready(workbench, configuration(workbench, sqlite, target))
    service.attend()
    assert SlowTarget.arrived.wait(60)
    workbench.write_window()
    service.crew.want(workbench.name, open_new=True)
    SlowTarget.let_go.set()
    while service.crew.busy():
        service.crew.wait(60)
    assert opened(service, workbench.name) == 2


def test_one_slow_action_delays_no_other_monitor(workbench: Any, sqlite: str, target: str) -> None:
    plain = configuration(workbench, sqlite, target)
    plain["monitors"]["quick"] = plain["monitors"][workbench.name] | {"actions": []}
    service = alarm_ready(workbench, plain)
    service.work("quick", True)
    quick = service.monitors["quick"]
    service.attend()
    assert SlowTarget.arrived.wait(60)
    slow, workbench.name = workbench.name, "quick"
    workbench.answer(quick)
    service.attend()
    while service.crew.busy() != {slow}:
        time.sleep(0.01)
    with service.store.read() as connection:
        assert rounds.get(connection, "quick", 1).state == "closed"
    assert service.crew.busy() == {slow}, "the slow one is still at it"


def asked_at(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When a monitor that has something to do is asked, in twenty minutes of a clock that tests set."""
    now, asked = [0.0], list[float]()
    service.monotonic = lambda: now[0]

    def want(name: str, *, open_new: bool) -> None:
        asked.append(now[0])
        service.work(name, open_new)

    monkeypatch.setattr(service.crew, "want", want)
    for _ in range(240):
        now[0] += 5.0
        service.attend()
    return [later - earlier for earlier, later in pairwise(asked)]


def test_a_monitor_that_gets_nowhere_is_asked_less_and_less(
    workbench: Any, sqlite: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = alarm_ready(workbench, configuration(workbench, sqlite, target))
    SlowTarget.let_go.set()  # the alarm itself takes no time
    service.registry.give_up()  # nothing is asked of MLflow any more, so that the round gets no further
    waits = asked_at(service, monkeypatch)
    assert waits[0] <= 10
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_REST


def test_a_lease_that_another_process_holds_is_asked_for_soon_and_often(
    workbench: Any, sqlite: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = alarm_ready(workbench, configuration(workbench, sqlite, target))
    with hold(service.store, workbench.name):
        waits = asked_at(service, monkeypatch)
    assert set(waits) == {LEASE_REST}


def test_where_all_are_due_those_that_waited_for_longest_are_first(
    workbench: Any, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that start again and again, each with too little time for all, would never come to the last ones."""
    plain = workbench.configuration(sqlite, schedule={"every": "10s"})
    plain["monitors"] = dict.fromkeys("abcde", plain["monitors"][workbench.name])
    service = Service(Settings.from_mapping(plain, workbench.folder))
    for minutes, name in enumerate("dace", start=1):
        with service.store.write() as connection:
            ticks.claim(connection, name, service.clock() - timedelta(minutes=10 - minutes), None)
    wanted: list[str] = []
    monkeypatch.setattr(service.crew, "want", lambda name, open_new: wanted.append(name))
    service.look()
    assert "".join(wanted) == "bdace", "b was never begun"


def test_a_run_that_another_process_kept_from_beginning_is_made_up_for(
    workbench: Any, sqlite: str, target: str
) -> None:
    service = Service(Settings.from_mapping(configuration(workbench, sqlite, target), workbench.folder))
    workbench.write_window()
    with hold(service.store, workbench.name):
        service.work(workbench.name, True)
    assert opened(service, workbench.name) == 0
    service.rests.end(workbench.name)  # the time it is left alone for is over
    service.attend()
    while service.crew.busy():
        service.crew.wait(60)
    assert opened(service, workbench.name) == 1
    with service.store.read() as connection:
        assert readiness.monitors_with_work(connection, service.clock()) == set()
    assert service._owed == set()


def test_a_run_that_the_database_kept_from_beginning_is_made_up_for(
    workbench: Any, tmp_path: Path, target: str
) -> None:
    file = tmp_path / "busy.db"
    service = daily(workbench, f"sqlite:///{file}?timeout=2", target)
    workbench.write_window()
    (name,) = service.timetable().due()
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        service.work(name, True)
    assert opened(service, name) == 0
    service.rests.end(name)  # the time it is left alone for is over
    attended(service)
    assert opened(service, name) == 1


def test_a_run_that_fails_after_it_began_is_not_begun_again(
    workbench: Any, sqlite: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = daily(workbench, sqlite, target)
    (name,) = service.timetable().due()
    opens = list[int]()

    def fails(_: object) -> None:
        opens.append(1)
        raise RuntimeError("a fault")

    monkeypatch.setattr(monitor, "open_round", fails)
    service.work(name, True)
    for _ in range(2):
        service.rests.end(name)
        attended(service)
    assert (opens, service._owed) == ([1], set())


def test_a_run_whose_time_was_over_goes_on(
    workbench: Any, sqlite: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(Settings.from_mapping(configuration(workbench, sqlite, target), workbench.folder))
    workbench.write_window()
    monkeypatch.setattr(scheduler, "CYCLE_SECONDS", -1.0)
    service.work(workbench.name, True)
    assert opened(service, workbench.name) == 0
    monkeypatch.undo()
    service.attend()
    while service.crew.busy():
        service.crew.wait(60)
    assert opened(service, workbench.name) == 1


def daily(workbench: Any, database: str, target: str, **schedule: Any) -> Service:
    """A service whose monitor is begun once a day."""
    plain = configuration(workbench, database, target, schedule={"every": "1d"} | schedule)
    return Service(Settings.from_mapping(plain, workbench.folder))


def attended(service: Service) -> None:
    """Somebody looks who has something to do, and it is done."""
    service.attend()
    while service.crew.busy():
        service.crew.wait(60)


def begun_and_killed(service: Service, name: str) -> None:
    """As it is after a process that was killed when it had begun the monitor's time."""
    with service.store.write() as connection:
        assert service.timetable().claim(name)(connection)


def begun_and_stopped(service: Service, name: str) -> None:
    """A process that was told to end as soon as it had begun the monitor's time."""
    service.stop()
    service.work(name, True)


@pytest.mark.parametrize("cut_off", [begun_and_killed, begun_and_stopped])
def test_a_cycle_that_was_cut_off_is_gone_on_with_by_whoever_is_there(
    workbench: Any, database: str, target: str, cut_off: Any
) -> None:
    workbench.write_window()
    cut_off(daily(workbench, database, target), workbench.name)
    other = daily(workbench, database, target)
    assert other.timetable().due() == [], "its next time is tomorrow"
    assert opened(other, workbench.name) == 0
    with hold(other.store, workbench.name):
        attended(other)
    assert opened(other, workbench.name) == 0, "who holds the lease may still be at it"
    attended(other)
    assert opened(other, workbench.name) == 1
    workbench.write_window()
    attended(other)
    assert opened(other, workbench.name) == 1, "what came to its end is not begun again"


def test_what_another_went_on_with_meanwhile_is_not_done_twice(
    workbench: Any, sqlite: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench.write_window()
    begun_and_killed(daily(workbench, sqlite, target), workbench.name)
    late, quick = daily(workbench, sqlite, target), daily(workbench, sqlite, target)
    begin = late.crew.want

    def want(name: str, *, open_new: bool) -> None:
        attended(quick)
        workbench.write_window()
        begin(name, open_new=open_new)

    monkeypatch.setattr(late.crew, "want", want)
    attended(late)
    assert opened(late, workbench.name) == 1
    assert late._owed == set()


def test_what_was_cut_off_longer_ago_than_the_grace_waits_for_its_next_time(
    workbench: Any, sqlite: str, target: str
) -> None:
    workbench.write_window()
    first = daily(workbench, sqlite, target, grace="2h")
    begun_and_killed(first, workbench.name)
    now = first.clock()
    other = daily(workbench, sqlite, target, grace="2h")
    other.clock = lambda: now + timedelta(hours=3)
    attended(other)
    assert opened(other, workbench.name) == 0


def test_seventy_monitors_run_on_few_connections(workbench: Any, postgres: Any, caplog: Any) -> None:
    url = postgres()
    open_store(url)
    few = few_connections(url, POOL)
    with connect(url).write() as connection:
        connection.exec_driver_sql(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {sa.engine.make_url(few).username}")
        connection.exec_driver_sql(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {sa.engine.make_url(few).username}")
    plain = workbench.configuration(few)
    plain["monitors"] = {f"m{number}": plain["monitors"][workbench.name] for number in range(70)}
    service = Service(Settings.from_mapping(plain, workbench.folder))
    with caplog.at_level(logging.WARNING):
        for name in service.timetable().due():
            service.crew.want(name, open_new=True)
        while service.crew.busy():
            service.crew.wait(60)
    assert caplog.text == ""
    with service.store.read() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM ticks")) == 70


def test_a_database_that_goes_away_is_told_in_one_line_without_a_traceback(
    workbench: Any, postgres: Any, target: str, caplog: Any
) -> None:
    url = postgres()
    service = Service(Settings.from_mapping(configuration(workbench, url, target), workbench.folder))
    name = sa.engine.make_url(url).database
    others = connect(sa.engine.make_url(url).set(database="postgres").render_as_string(hide_password=False))

    def admin(said: str) -> None:
        with others.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(said)

    with caplog.at_level(logging.DEBUG):
        for _ in range(2):
            service.work(workbench.name, True)
            admin(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            admin(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            service.work(workbench.name, True)
            admin(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        service.work(workbench.name, True)
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.name for record in told] == ["opmon.service.scheduler"] * 2
    assert all("the database" in record.getMessage() and record.exc_info is None for record in told)
    service.registry.give_up()


def test_a_cycle_that_only_meets_with_problems_adds_no_line_of_its_own(
    workbench: Any, sqlite: str, target: str, caplog: Any
) -> None:
    """The problem itself is told, and a repeated one once in ten minutes; a count of them would be told for ever."""
    plain = configuration(workbench, sqlite, target)
    plain["monitors"][workbench.name]["source"] = {"path": str(workbench.folder / "gone")}
    service = Service(Settings.from_mapping(plain, workbench.folder))
    with caplog.at_level(logging.INFO):
        service.work(workbench.name, True)
    (told,) = [record for record in caplog.records if record.name.startswith("opmon.")]
    assert (told.levelname, told.name) == ("WARNING", "opmon.stages.cycle")
    service.registry.give_up()


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_a_request_to_read_the_configuration_again_does_not_end_a_process_that_has_just_begun(tmp_path: Path) -> None:
    """To systemd an end by SIGHUP is no failure: nobody would begin it again. A pipe tells how far it has got."""
    path = tmp_path / "opmon.yaml"
    os.mkfifo(path)
    process = subprocess.Popen([sys.executable, "-m", "opmon", "serve", "-c", str(path)], stderr=subprocess.PIPE)
    try:
        with path.open("wb") as pipe:  # it waits until the configuration is read
            process.send_signal(signal.SIGHUP)
            pipe.write(b"monitors: {}")
        process.communicate(timeout=LONGEST)
    finally:
        process.kill()
    assert process.returncode == 2, "what it says of the configuration"


@contextmanager
def serve(workbench: Any, plain: dict[str, Any]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """``opmon serve``, and the file that holds what it says."""
    path, said = workbench.folder / "opmon.yaml", workbench.folder / "said.log"
    path.write_text(yaml.safe_dump(plain))
    with said.open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "opmon", "serve", "-c", str(path)], stderr=log)
    try:
        yield process, said
    finally:
        process.kill()
        process.wait()


def test_a_second_signal_ends_at_once(workbench: Any, sqlite: str, target: str) -> None:
    plain = configuration(workbench, sqlite, target)
    alarm_ready(workbench, plain)
    with serve(workbench, plain) as (process, _):
        assert SlowTarget.arrived.wait(240)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM, "what one signal ends after its last steps ends with 0"


def test_one_signal_ends_it_within_ten_seconds_whatever_hangs(workbench: Any, sqlite: str, target: str) -> None:
    plain = configuration(workbench, sqlite, target)
    alarm_ready(workbench, plain)
    with serve(workbench, plain) as (process, said):
        assert SlowTarget.arrived.wait(240)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert time.monotonic() - begun < 10
        assert f"ending though this is still under way: {workbench.name} (" in said.read_text()
        assert "Traceback" not in said.read_text()


@pytest.fixture(params=["stalls", "drips"])
def bad_server(request: pytest.FixtureRequest) -> Iterator[tuple[str, threading.Event]]:
    """A server that takes every request, and says nothing, or a byte now and then."""
    met, over = threading.Event(), threading.Event()
    begin = {"stalls": b"", "drips": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Long: "}[request.param]

    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            met.set()
            try:
                connection.sendall(begin)
                while not over.wait(0.2):
                    connection.sendall(b"a" if begin else b"")
            except OSError:
                pass

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:

        def serve() -> None:
            while not over.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", met
        over.set()
        listener.shutdown(socket.SHUT_RDWR)


def test_it_stops_while_mlflow_does_not_answer(
    workbench: Any, sqlite: str, bad_server: tuple[str, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, met = bad_server
    plain = workbench.configuration(sqlite)
    plain["mlflow"] = {"tracking_uri": uri}
    workbench.write_window()
    monkeypatch.setattr(scheduler, "LAST_STEPS", 0.2)
    service = Service(Settings.from_mapping(plain, workbench.folder))
    running = threading.Thread(target=service.run)
    running.start()
    assert met.wait(300)
    service.stop()
    running.join(45)  # a call is left after 60 s
    assert not running.is_alive()
    with hold(service.store, workbench.name) as lease:
        assert lease.token == 2, "the lease was given back"


@pytest.mark.usefixtures("workbench")
def test_a_cycle_with_a_server_that_does_not_answer_ends(
    workbench: Any,
    sqlite: str,
    bad_server: tuple[str, threading.Event],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setattr(Breaker, "FIRST_REST", 3600.0)
    good = workbench.monitor(sqlite, round={"min_inputs": 50, "max_inputs": 50})
    workbench.write_window()
    good.advance()
    workbench.answer(good)
    plain = workbench.configuration(sqlite)
    plain["mlflow"] = {"tracking_uri": bad_server[0]}
    service = Service(Settings.from_mapping(plain, workbench.folder))
    cycle = service.monitors[workbench.name].advance()
    told = [entry.getMessage() for entry in caplog.records if entry.name == "opmon.stages.cycle"]
    assert len(told) >= 4, "each of the rounds"
    alone = sum("left alone" in line for line in told)
    assert alone == len(told) - Breaker.FAILURES, "and yet only the first of them were waited for"
    assert len(cycle.problems) == Breaker.FAILURES + 1, "those that were waited for, and once that it is left alone"


def test_a_cycle_begins_no_step_after_its_time(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite)
    workbench.write_window()
    assert monitor.advance(seconds=-1.0).opened == 0
    assert monitor.advance().opened == 1

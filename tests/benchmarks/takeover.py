"""How soon another worker goes on where one is killed or stopped, and what a clock that jumps does.

    pip install -e plugins/opmon-example        # and, for the clocks, Debian's package faketime
    python tests/benchmarks/takeover.py

Real workers (``opmon serve --role worker``) on a real PostgreSQL of at most 100 connections:

* ``crowd``: 300 monitors on two workers: all of them run, and how many connections are open at most.
* ``killed``: a worker dies by SIGKILL while it holds leases; on this machine, and on one of another name
  (``unshare``), where nobody can see that its process is gone.
* ``stopped``: a worker gets SIGSTOP while PostgreSQL says that it is inside a transaction that holds a lease's row.
* ``clock``: the clock of a worker jumps an hour back or on (libfaketime).

Bars: taken over in less than two leases; after a jump the next cycle at most one period late. Exits 1 where one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import sqlalchemy as sa

from opmon.service.crew import PLACES
from opmon.store.leases import TIME_TO_LIVE
from tests.benchmarks.soak_world import World, accounts
from tests.benchmarks.takeover_crew import Crew, crew
from tests.databases import postgres_server

LEASE = TIME_TO_LIVE.total_seconds()
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
_HOLDS = """
    SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid AND l.granted
    WHERE a.application_name = :name
    AND (a.state = 'idle in transaction' OR a.state = 'active' AND a.wait_event = 'ClientRead')
    AND l.relation = 'leases'::regclass AND l.mode IN ('RowShareLock', 'RowExclusiveLock')
"""
"""Sessions that stand inside a transaction with the row of a lease."""


def crowd(arguments: argparse.Namespace, folder: Path, new: Callable[[], str]) -> dict[str, object]:
    """Many monitors on a PostgreSQL of 100 connections."""
    with crew(Crew(folder, new(), arguments.crowd, arguments.crowd_period)) as made:
        for name in ("one", "two"):
            made.begin(name)
        first = made.all_begun(arguments.patience)
        before, connections = made.counts(), 0
        until = time.monotonic() + arguments.crowd_seconds
        while time.monotonic() < until:
            named = "application_name IN ('one', 'two')"
            (row,) = made.ask(f"SELECT count(*) FROM pg_stat_activity WHERE {named}")
            connections = max(connections, int(str(row[0])))
            time.sleep(0.5)
        cycles = [after - before.get(name, 0) for name, after in made.counts().items()]
        (limit,) = made.ask("SHOW max_connections")
    due = arguments.crowd_seconds / arguments.crowd_period
    return {
        "monitors": arguments.crowd,
        "max_connections": str(limit[0]),
        "connections": connections,
        "all_begun_seconds": round(first, 1),
        "cycles_due": round(due, 1),
        "fewest_cycles": min(cycles),
        "holds": connections <= 20 and min(cycles) >= int(due) - 1,
    }


def killed(arguments: argparse.Namespace, folder: Path, new: Callable[[], str], elsewhere: bool) -> dict[str, object]:
    """SIGKILL for a worker that is at monitors: how long until another has begun each of them.

    There are no more monitors than a worker works on side by side: each delivery takes 50 s, and one that finds all its
    places taken would show how soon these are free instead.
    """
    count = min(arguments.monitors, PLACES)
    with crew(Crew(folder, new(), count, arguments.period, slow=True)) as made:
        before = ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"] if elsewhere else []
        made.begin("dies", before)
        made.all_begun(arguments.patience)
        made.begin("lives")
        _wait_for_line(made.folder / "lives.log", "watching")
        _give_work(made)
        held = _held(made, "dies" if not elsewhere else "elsewhere", arguments.patience)
        taken = _taken_over(made, held, lambda: made.workers["dies"].kill(), arguments.patience)
    return {**_told(taken), "elsewhere": elsewhere}


def stopped(arguments: argparse.Namespace, folder: Path, new: Callable[[], str]) -> dict[str, object]:
    """SIGSTOP for a worker inside a transaction: how long until another has begun each monitor."""
    with crew(Crew(folder, new(), arguments.monitors, 1.0)) as made:
        made.begin("stands")
        made.all_begun(arguments.patience)
        made.begin("lives")
        _wait_for_line(made.folder / "lives.log", "watching")
        world = World(made.folder, made.database, arguments.monitors)
        for name in made.begun():
            world.write(name)
        tries = _stop_inside(made, "stands", arguments.patience)
        began = time.monotonic()
        (inside,) = made.ask("SELECT count(*) FROM pg_stat_activity WHERE xact_start < now() - interval '0.3 s'")
        taken = _watch(made, set(made.begun()), began, arguments.patience)
        made.workers["stands"].send_signal(signal.SIGCONT)
        books, until = accounts(made.engine, world.written), time.monotonic() + arguments.patience
        while (books["rounds_open"] or books["rounds_lost"]) and time.monotonic() < until:
            time.sleep(1)
            books = accounts(made.engine, world.written)
    wrong = {name: books[name] for name in ("rounds_lost", "rounds_doubled", "slices_doubled", "rounds_open")}
    told = _told(taken)
    told["holds"] = bool(told["holds"]) and not any(wrong.values())
    return {**told, "tries": tries, "sessions_inside": int(str(inside[0])), **wrong}


def clock(arguments: argparse.Namespace, folder: Path, new: Callable[[], str], to: str) -> dict[str, object]:
    """The clock of a worker jumps: by how much the next cycles are late."""
    said = folder.parent / f"{folder.name}-clock"
    said.write_text("+0")
    environment = faked(said)
    with crew(Crew(folder, new(), arguments.monitors, arguments.clock_period, environment)) as made:
        made.begin("one")
        made.all_begun(arguments.patience)
        time.sleep(2 * arguments.clock_period)
        seen, since, longest = made.counts(), time.monotonic(), 0.0
        last = dict.fromkeys(seen, since)
        said.write_text(to)
        while time.monotonic() < since + 5 * arguments.clock_period:
            now = made.counts()
            for name in now:
                if now[name] != seen.get(name):
                    seen[name], last[name] = now[name], time.monotonic()
                longest = max(longest, time.monotonic() - last[name])
            time.sleep(0.2)
        log = (made.folder / "one.log").read_text()
    late = longest - arguments.clock_period
    return {
        "jump": to,
        "period_seconds": arguments.clock_period,
        "longest_gap_seconds": round(longest, 1),
        "told": "the clock jumped by" in log,
        "holds": late <= arguments.clock_period and "the clock jumped by" in log,
    }


def faked(said: Path) -> dict[str, str]:
    """The environment of a process whose time of day is what a file says; its clock that only goes forward is true."""
    return {
        "LD_PRELOAD": str(_FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(said),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def _give_work(made: Crew) -> None:
    """Inputs whose answers are all wrong: each monitor raises an alarm, whose delivery takes long."""
    world = World(made.folder, made.database, made.monitors, wrong=True)
    for name in made.begun():
        world.write(name)


def _held(made: Crew, holder: str, seconds: float) -> set[str]:
    """The monitors whose leases a worker holds, once it holds some for longer than a cycle takes."""
    until, before = time.monotonic() + seconds, set[str]()
    pid = made.workers["dies"].pid
    while time.monotonic() < until:
        rows = made.ask("SELECT name, holder FROM leases WHERE expires_at > clock_timestamp()")
        mine = {str(name) for name, who in rows if str(who).split("|")[1] == str(pid) and not str(name).startswith("@")}
        if mine & before:
            return mine & before
        before = mine
        time.sleep(6)
    raise SystemExit(f"the worker {holder} held no lease for long in {seconds:g} s")


def _taken_over(made: Crew, held: set[str], strike: Callable[[], None], seconds: float) -> dict[str, float]:
    """By monitor, how long after the strike another worker held its lease."""
    tokens = {str(name): token for name, token in made.ask("SELECT name, token FROM leases")}
    strike()
    began, taken = time.monotonic(), dict[str, float]()
    while len(taken) < len(held) and time.monotonic() < began + seconds:
        for name, token in made.ask("SELECT name, token FROM leases"):
            if str(name) in held and token != tokens[str(name)]:
                taken.setdefault(str(name), time.monotonic() - began)
        time.sleep(0.1)
    return {name: taken.get(name, float("inf")) for name in held}


def _stop_inside(made: Crew, name: str, seconds: float) -> int:
    """Stop a worker while it is inside a transaction that holds a lease; gives how many tries it took."""
    until, tries = time.monotonic() + seconds, 0
    with made.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while time.monotonic() < until:
            if not connection.execute(sa.text(_HOLDS), {"name": name}).first():
                continue
            made.workers[name].send_signal(signal.SIGSTOP)
            tries += 1
            time.sleep(0.3)
            if connection.execute(sa.text(_HOLDS), {"name": name}).first():
                return tries
            made.workers[name].send_signal(signal.SIGCONT)
    raise SystemExit(f"the worker {name} was never caught inside a transaction in {seconds:g} s")


def _watch(made: Crew, names: set[str], began: float, seconds: float) -> dict[str, float]:
    """By monitor, how long after ``began`` its next cycle was begun."""
    before, taken = made.begun(), dict[str, float]()
    while len(taken) < len(names) and time.monotonic() < began + seconds:
        for name, at in made.begun().items():
            if at != before.get(name):
                taken.setdefault(name, time.monotonic() - began)
        time.sleep(0.1)
    return {name: taken.get(name, float("inf")) for name in names}


def _told(taken: Mapping[str, float]) -> dict[str, object]:
    longest = max(taken.values(), default=float("inf"))
    return {
        "monitors": len(taken),
        "longest_seconds": round(longest, 1),
        "bar_seconds": 2 * LEASE,
        "holds": longest < 2 * LEASE,
    }


def _wait_for_line(log: Path, words: str, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while words not in log.read_text():
        if time.monotonic() > until:
            raise SystemExit(log.read_text())
        time.sleep(0.2)


def _steps(
    arguments: argparse.Namespace,
) -> Iterator[tuple[str, Callable[[Path, Callable[[], str]], dict[str, object]]]]:
    yield "crowd", lambda folder, new: crowd(arguments, folder, new)
    yield "killed", lambda folder, new: killed(arguments, folder, new, elsewhere=False)
    if shutil.which("unshare") is not None and os.geteuid() == 0:
        yield "killed elsewhere", lambda folder, new: killed(arguments, folder, new, elsewhere=True)
    yield "stopped", lambda folder, new: stopped(arguments, folder, new)
    if _FAKETIME.exists():
        yield "clock back", lambda folder, new: clock(arguments, folder, new, "-1h")
        yield "clock on", lambda folder, new: clock(arguments, folder, new, "+1h")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--crowd", type=int, default=300, help="monitors of the first step")
    parser.add_argument("--crowd-period", type=float, default=30.0, help="seconds")
    parser.add_argument("--crowd-seconds", type=float, default=120.0, help="for how long they are watched")
    parser.add_argument("--monitors", type=int, default=20, help="monitors of the other steps")
    parser.add_argument("--period", type=float, default=2.0, help="seconds, where a worker is killed")
    parser.add_argument("--clock-period", type=float, default=10.0, help="seconds, where a clock jumps")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds that anything may take")
    parser.add_argument("--only", help="the steps whose names have this in them")
    arguments = parser.parse_args()
    verdicts = []
    with (
        tempfile.TemporaryDirectory(prefix="opmon-takeover-") as name,
        postgres_server(Path(name) / "postgres") as server,
    ):
        for number, (step, function) in enumerate(_steps(arguments)):
            if arguments.only is None or arguments.only in step:
                found = function(Path(name) / str(number), server.new)
                print(json.dumps({"step": step, **found, "load": round(os.getloadavg()[0], 1)}), flush=True)
                verdicts.append(bool(found["holds"]))
    print(json.dumps({"steps": len(verdicts), "hold": sum(verdicts)}))
    sys.exit(0 if all(verdicts) else 1)


if __name__ == "__main__":
    main()

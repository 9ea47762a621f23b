"""Two workers on one PostgreSQL, for long, while one is killed and the other stopped: is anything lost or doubled?

    pip install -e plugins/opmon-example
    python tests/benchmarks/soak.py --monitors 200 --period 10 --minutes 20

Every ``--kill-every`` seconds one worker is killed and another started; the other is stopped for ``--stop-for``
seconds every ``--stop-every``. Inputs keep coming into the log of each monitor, with their truth, so that rounds open
and close. Every ``--rest-every`` seconds none come for ``--rest-for``: what a worker holds then, it holds for good.
In the end every input must be in one round and every round closed; no monitor may have waited more than three periods
longer than one, what the worker that was never killed holds at rest may not grow by 5 MB/h, as far as that can be told
from chance (``--minutes 60`` tells more), and all connections to the database are counted.
Figures and a verdict for each bar are printed, and a line a minute on the way; it exits 1 where a bar fails. A signal
ends it early, with what was seen until then. What the processors were asked for is printed too: on a machine that is
busy with other things, times say little.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from opmon.store.engine import open_store
from tests.benchmarks.soak_world import Watch, World, accounts
from tests.databases import postgres_server


def soak(arguments: argparse.Namespace, folder: Path, database: str) -> dict[str, object]:
    world = World(folder, database, arguments.monitors)
    open_store(database).close()
    world.begin(arguments.period)
    try:
        return _soaked(arguments, world, database)
    finally:
        world.end()


def _soaked(arguments: argparse.Namespace, world: World, database: str) -> dict[str, object]:
    engine = sa.create_engine(database, connect_args={"application_name": "soak"}, pool_size=1)
    start = _warmed_up(arguments, engine)
    watch = Watch(engine, psutil.Process(world.workers[0].pid))
    begun = time.monotonic()
    with suppress(KeyboardInterrupt):
        _trouble(arguments, world, watch)
    minutes = (time.monotonic() - begun) / 60
    world.workers[0].send_signal(signal.SIGCONT)
    deadline = time.monotonic() + arguments.drain
    found = accounts(engine, world.written)
    with suppress(KeyboardInterrupt):
        while time.monotonic() < deadline and (found["rounds_open"] or found["rounds_lost"]):
            time.sleep(1)
            found = accounts(engine, world.written)
    cpu = watch.process.cpu_times()
    codes = world.end()
    engine.dispose()
    gaps, (growth, error) = sorted(watch.longest.values()), watch.growth()
    return {
        **found,
        "minutes": round(minutes, 1),
        "start_seconds": round(start, 1),
        "kills": world.kills,
        "stops": world.stops,
        "monitors_begun": len(watch.begun),
        "longest_wait_seconds": round(gaps[-1], 1),
        "median_longest_wait_seconds": round(gaps[len(gaps) // 2], 1),
        "waits_above_four_periods": sum(gap > 4 * arguments.period for gap in gaps),
        "connections": watch.connections,
        "memory_mb": round(watch.memory[-1][1]),
        "memory_growth_mb_per_hour": round(growth, 1),
        "memory_growth_error": round(error, 1),
        "memory_at_rest_mb": [round(size) for _, size in watch.at_rest],
        "first_worker_cpu_seconds": round(cpu.user + cpu.system, 1),
        "load": round(os.getloadavg()[0], 1),
        "exit_codes": codes,
    }


def verdicts(arguments: argparse.Namespace, found: Mapping[str, Any]) -> dict[str, bool]:
    """Which bars hold."""
    wrong = ("rounds_lost", "rounds_doubled", "slices_doubled", "rounds_open", "gaps_in_numbers")
    return {
        "the whole time": found["minutes"] >= arguments.minutes,
        "no round lost or doubled": not any(found[name] for name in wrong)
        and found["inputs_in_rounds"] == found["inputs_written"] > 0,
        "no period missed by more than three": found["monitors_begun"] == arguments.monitors
        and found["waits_above_four_periods"] == 0,
        "memory does not grow by 5 MB/h": found["memory_growth_mb_per_hour"] - 2 * found["memory_growth_error"] < 5,
        "at most 20 connections": found["connections"] <= 20,
        "workers end in order": found["exit_codes"] == [0, 0],
    }


def _warmed_up(arguments: argparse.Namespace, engine: sa.Engine) -> float:
    """Wait for the first cycle of every monitor; gives how long the first of them took."""
    begun, start = time.monotonic(), None
    while time.monotonic() < begun + arguments.warm_up and (count := _begun(engine)) < arguments.monitors:
        start = time.monotonic() - begun if start is None and count else start
        time.sleep(0.5)
    return start or time.monotonic() - begun


def _trouble(arguments: argparse.Namespace, world: World, watch: Watch) -> None:
    """Inputs come, one worker is killed again and again, the other stopped."""
    started, names = time.monotonic(), [f"m{k:03}" for k in range(arguments.monitors)]
    next_kill, next_stop, until_stop, files, told = arguments.kill_every, arguments.stop_every, None, 0, 0
    rested, resting_since, next_rest = 0.0, None, arguments.rest_every
    while (passed := time.monotonic() - started) < 60 * arguments.minutes:
        if resting_since is not None and passed >= resting_since + arguments.rest_for:
            watch.rested(arguments.rest_for / 2)
            rested, resting_since, next_rest = rested + passed - resting_since, None, passed + arguments.rest_every
        elif resting_since is None and until_stop is None and passed >= next_rest:
            resting_since = passed
        due = int(((resting_since or passed) - rested) / arguments.inputs_every * len(names))
        for number in range(files, due):
            world.write(names[number % len(names)])
        files = max(files, due)
        if passed >= next_kill:
            world.kill()
            next_kill += arguments.kill_every
        if until_stop is not None and passed >= until_stop:
            world.workers[0].send_signal(signal.SIGCONT)
            until_stop = None
        elif until_stop is None and resting_since is None and passed >= next_stop:
            world.workers[0].send_signal(signal.SIGSTOP)
            world.stops += 1
            until_stop, next_stop = passed + arguments.stop_for, passed + arguments.stop_for + arguments.stop_every
        watch.look()
        if passed >= 60 * (told + 1):
            told += 1
            longest, memory = max(watch.longest.values(), default=0.0), watch.memory[-1][1]
            line = f"{told} min: longest wait {longest:.0f} s, {watch.connections} connections, {memory:.0f} MB"
            print(line, file=sys.stderr, flush=True)
        time.sleep(0.5)


def _begun(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        return connection.scalar(sa.text("SELECT count(*) FROM cycles")) or 0


def arguments_of(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--monitors", type=int, default=200)
    parser.add_argument("--period", type=float, default=10.0, help="seconds")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--inputs-every", type=float, default=120.0, help="seconds between files of one monitor")
    parser.add_argument("--kill-every", type=float, default=60.0)
    parser.add_argument("--stop-every", type=float, default=180.0)
    parser.add_argument("--stop-for", type=float, default=120.0)
    parser.add_argument("--rest-every", type=float, default=150.0, help="seconds from one rest to the next")
    parser.add_argument("--rest-for", type=float, default=70.0, help="seconds; memory is given back once a minute")
    parser.add_argument(
        "--warm-up",
        type=float,
        default=180.0,
        help="seconds that the first cycles may take",
    )
    parser.add_argument("--drain", type=float, default=180.0, help="seconds that the last rounds may take")
    return parser.parse_args(given)


def main() -> None:
    arguments = arguments_of()
    for number in (signal.SIGTERM, signal.SIGINT):  # one that was started in the background ignores SIGINT
        signal.signal(number, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory(prefix="opmon-soak-") as folder,
        postgres_server(Path(folder) / "postgres") as server,
    ):
        (Path(folder) / "opmon").mkdir()
        found = soak(arguments, Path(folder) / "opmon", server.new())
    held = verdicts(arguments, found)
    print(json.dumps({**found, "bars": held}, indent=1))
    sys.exit(0 if all(held.values()) else 1)


if __name__ == "__main__":
    main()

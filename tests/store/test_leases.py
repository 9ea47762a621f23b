from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from opmon.errors import LeaseHeld, LeaseLost
from opmon.store.engine import open_store
from opmon.store.leases import TIME_TO_LIVE, hold
from opmon.store.schema import leases


def test_a_second_holder_is_told_who_has_it(database: str) -> None:
    store = open_store(database)
    with hold(store, "digits"):
        with pytest.raises(LeaseHeld, match=f"process {os.getpid()}"), hold(store, "digits"):
            pass
        with hold(store, "another"):
            pass
    with hold(store, "digits") as lease:
        assert lease.token == 2


def test_only_one_of_many_gets_it(database: str) -> None:
    store = open_store(database)

    def attempt(_: int) -> int:
        try:
            with hold(store, "digits"):
                time.sleep(0.3)
                return 1
        except LeaseHeld:
            return 0

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(attempt, range(6))) == 1


def test_a_holder_that_was_replaced_cannot_write(database: str) -> None:
    store = open_store(database)
    with hold(store, "digits") as lease:
        with store.write() as connection:
            connection.execute(leases.update().values(token=lease.token + 1))
        with pytest.raises(LeaseLost), lease.write():
            pass


def test_an_expired_lease_is_taken_over(database: str) -> None:
    store = open_store(database)
    past = datetime.now(UTC) - timedelta(seconds=1)
    with store.write() as connection:
        connection.execute(leases.insert().values(name="digits", holder="elsewhere|1|x|9", token=7, expires_at=past))
    with hold(store, "digits") as lease:
        assert lease.token == 8


def test_a_holder_on_another_machine_is_waited_for(database: str) -> None:
    store = open_store(database)
    with store.write() as connection:
        connection.execute(
            leases.insert().values(
                name="digits", holder="elsewhere|1|x|9", token=7, expires_at=datetime.now(UTC) + TIME_TO_LIVE
            )
        )
    with pytest.raises(LeaseHeld, match="on elsewhere"), hold(store, "digits"):
        pass


def _hold_for_ever(url: str, ready: str) -> None:
    with hold(open_store(url), "digits"):
        Path(ready).touch()
        time.sleep(600)


def test_a_killed_holder_is_replaced_at_once(database: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    ready = tmp_path / "ready"
    process = multiprocessing.get_context("spawn").Process(target=_hold_for_ever, args=(database, str(ready)))
    process.start()
    while not ready.exists():
        time.sleep(0.02)
    store = open_store(database)
    with pytest.raises(LeaseHeld), hold(store, "digits"):
        pass
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with hold(store, "digits") as lease:
        assert lease.token == 2

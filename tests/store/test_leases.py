from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

import opmon.store.leases as leases_module
from opmon.errors import DatabaseUnavailable, LeaseHeld, LeaseLost
from opmon.store.engine import Store, open_store
from opmon.store.leases import TIME_TO_LIVE, hold
from opmon.store.schema import leases
from tests.forked import forks
from tests.patience import until


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


def test_tables_that_a_newer_release_has_brought_up_to_date_are_left_alone(database: str) -> None:
    store = open_store(database)
    with hold(store, "digits") as lease:
        with store.write() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(DatabaseUnavailable, match="at schema 9999"), lease.write():
            pass
    with pytest.raises(DatabaseUnavailable, match="Start the new release"), hold(store, "digits"):
        pass


def test_what_could_not_be_given_back_is_given_back_as_soon_as_the_database_is_there(
    postgres: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(postgres())
    with hold(store, "digits"), store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE leases RENAME TO away")
    assert "could not be given back yet" in caplog.text
    with store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO leases")
    until(lambda: _holder_of(store) == "")
    with hold(store, "digits") as lease:
        assert lease.left_by is None


def _holder_of(store: Store) -> str:
    with store.read() as connection:
        return str(connection.scalar(sa.select(leases.c.holder)))


def test_a_lease_that_ran_out_while_the_database_was_away_tells_of_no_death(postgres: Callable[[], str]) -> None:
    store, past = open_store(postgres()), datetime.now(UTC) - timedelta(seconds=1)
    for out_of_reach, left_by in ((False, "process 7 on elsewhere"), (True, None)):
        with store.write() as connection:
            connection.execute(leases.delete())
            row = {"name": "digits", "holder": "elsewhere|7||", "token": 3, "expires_at": past}
            connection.execute(leases.insert().values(row))
        if out_of_reach:
            with pytest.raises(DatabaseUnavailable), store.write() as connection:
                connection.execute(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))
        with hold(store, "digits") as lease:
            assert (lease.token, lease.left_by) == (4, left_by)


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


def test_a_lease_from_before_the_clock_went_back_is_over(database: str) -> None:
    store = open_store(database)
    ahead = datetime.now(UTC) + timedelta(hours=2)
    with store.write() as connection:
        connection.execute(leases.insert().values(name="digits", holder="elsewhere|1|x|9", token=7, expires_at=ahead))
    with hold(store, "digits") as lease:
        assert lease.token == 8


def _stand_still(url: str, ready: str, where: str) -> None:
    """Stopped with the lease's row locked; the database has ended the transaction when it wakes up."""
    leases_module.TIME_TO_LIVE = timedelta(seconds=1)

    def stop() -> None:
        Path(ready).touch()
        os.kill(os.getpid(), signal.SIGSTOP)

    def rows() -> Iterator[tuple[str]]:
        yield ("first",)
        stop()
        yield ("second",)

    with hold(open_store(url), "digits") as lease:
        try:
            with lease.write() as connection:
                driver = connection.connection.driver_connection
                assert driver is not None
                match where:
                    case "between statements":
                        stop()
                    case "among rows":
                        driver.cursor().executemany("INSERT INTO ticks VALUES (%s, now())", rows())
                    case "in a copy":
                        with driver.cursor().copy("COPY ticks FROM STDIN"):
                            stop()
                    case "half a message":
                        driver.pgconn.nonblocking = 1
                        driver.pgconn.send_query_params(b"SELECT $1::text", [b"x" * 50_000_000])
                        assert driver.pgconn.flush() == 1, "more is to be sent"
                        stop()
                        driver.pgconn.nonblocking = 0
                connection.execute(leases.update().values(holder="late|1||"))
        except (DatabaseUnavailable, psycopg.Error):
            os._exit(7)


@pytest.mark.parametrize("where", ["between statements", "among rows", "in a copy", "half a message"])
def test_a_holder_that_stands_still_inside_a_transaction_is_replaced(
    postgres: Callable[[], str], tmp_path: Path, where: str
) -> None:
    url = postgres()
    open_store(url)
    limits = "options=-c%20idle_in_transaction_session_timeout%3D5s%20-c%20lock_timeout%3D100ms"
    url += f"{'&' if '?' in url else '?'}{limits}"
    process = forks().Process(target=_stand_still, args=(url, str(tmp_path / "ready"), where))
    process.start()
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)
    store, told = open_store(url), set[str]()
    while True:
        begun = time.monotonic()
        try:
            with hold(store, "digits") as lease:
                break
        except LeaseHeld as exc:
            told.add(str(exc).partition("process")[0] + ("stands still" if "stands still" in str(exc) else "works"))
            assert time.monotonic() - begun < 10, "nobody is kept waiting"
            time.sleep(0.05)
    assert lease.token == 2
    assert any("stands still" in words for words in told), told
    os.kill(process.pid or 0, signal.SIGCONT)
    process.join(30)
    assert process.exitcode == 7
    with store.read() as connection:
        assert connection.scalar(sa.select(leases.c.holder)) != "late|1||"


def _hold_for_ever(url: str, ready: str) -> None:
    with hold(open_store(url), "digits"):
        Path(ready).touch()
        time.sleep(600)


def test_a_killed_holder_is_replaced_at_once(database: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    ready = tmp_path / "ready"
    process = forks().Process(target=_hold_for_ever, args=(database, str(ready)))
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
        assert (lease.token, lease.left_by) == (2, f"process {process.pid} on {socket.gethostname()}")
    with hold(store, "digits") as lease:
        assert lease.left_by is None, "it was given back"

"""Only sessions whose client stands still are ended; those that are slow are not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
import sqlalchemy as sa

from opmon.errors import DatabaseUnavailable
from opmon.store._stalled import APART_SECONDS, end_stalled
from opmon.store.engine import Store, open_store
from opmon.store.schema import ticks
from tests.patience import until

_LIMITS = "options=-c%20idle_in_transaction_session_timeout%3D1s"


@pytest.fixture
def store(postgres: Callable[[], str]) -> Store:
    url = postgres()
    open_store(url)
    return open_store(f"{url}{'&' if '?' in url else '?'}{_LIMITS}")


def _copy(store: Store, entered: threading.Event, more: Callable[[], bool]) -> None:
    with store.write() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        with driver.cursor().copy("COPY ticks (monitor, at) FROM STDIN") as copy:
            entered.set()
            number = 0
            while more():
                copy.write("".join(f"m{number}-{k}\t2026-03-02 00:00:00+00\n" for k in range(2000)))
                number += 1


def _state(store: Store) -> str | None:
    query = "SELECT wait_event FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active'"
    with store.read() as connection:
        found: str | None = connection.scalar(sa.text(query))
        return found


def test_a_copy_that_gets_on_slowly_is_left_alone(store: Store) -> None:
    entered, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=_copy, args=(store, entered, lambda: not over.wait(APART_SECONDS / 8)))
    thread.start()
    entered.wait()
    begun, looks = time.monotonic(), 0
    while time.monotonic() - begun < 3 * APART_SECONDS:
        assert end_stalled(store.engine) == 0
        looks += time.monotonic() - begun > 1 + APART_SECONDS
    over.set()
    thread.join()
    assert looks, "it has taken longer than a session may stand still"
    with store.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(ticks)) > 0


def test_one_that_does_not_get_on_is_ended_and_told(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    entered, over = threading.Event(), threading.Event()

    def stays() -> bool:
        over.wait()
        return False

    with ThreadPoolExecutor(1) as pool:
        stands = pool.submit(_copy, store, entered, stays)
        entered.wait()
        assert end_stalled(store.engine) == 0, "it has only begun"
        until(lambda: end_stalled(store.engine) == 1, 0.1)
        until(lambda: _state(store) is None)
        over.set()
        with pytest.raises((DatabaseUnavailable, psycopg.Error)):
            stands.result()
    assert "had stood still for" in caplog.text
    with store.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(ticks)) == 0


def test_sessions_that_hold_nothing_of_opmon_are_left_alone(store: Store) -> None:
    with store.write() as connection:
        connection.execute(sa.text("CREATE TABLE theirs (a int)"))
    entered, over = threading.Event(), threading.Event()

    def work() -> None:
        with store.write() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            with driver.cursor().copy("COPY theirs FROM STDIN"):
                entered.set()
                over.wait()

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    time.sleep(1.5)
    assert end_stalled(store.engine) == 0
    over.set()
    thread.join()

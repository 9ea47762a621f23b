"""What somebody else wrote is kept, and stops nobody's transaction, whatever it holds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.errors import DeliveryError
from opmon.store import cycles, outbox
from opmon.store._inserting import insert
from opmon.store.backup import backup
from opmon.store.engine import connect, open_store
from opmon.store.leases import hold
from opmon.store.restoring import restore
from opmon.store.schema import audit, deliveries, events
from opmon.triggers import delivery

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SAID = "a\0b\ud800c"
EVENT = {"id": "1", "monitor": "digits", "rule": "floor", "type": "opmon.alarm", "message": SAID}


class Refusing:
    def act(self, event: Mapping[str, Any]) -> None:
        raise DeliveryError(SAID)


def test_an_attempt_counts_whatever_the_action_says(database: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "opmon")  # reports of tests are sent as UTF-8, which has no such text
    store = open_store(database)
    with store.write() as connection:
        outbox.add(connection, None, EVENT, ["hook"], NOW)
    with hold(store, "digits") as lease:
        delivery.deliver(lease, "digits", {"hook": Refusing()}, lambda: NOW)
    with store.read() as connection:
        told = outbox.get(connection, "1")
    (kept,) = told["deliveries"]
    assert (kept["state"], kept["attempts"]) == ("pending", 1)
    assert kept["problem"] in ("a b c", "a\0b c")
    assert told["body"] == EVENT, "a document holds what it held"


@pytest.mark.parametrize("count", [1, 300])
def test_rows_are_written_and_found_again_one_by_one_and_many_at_once(database: str, count: int) -> None:
    store, names = open_store(database), ["at", "who", "known_by", "origin", "act", "about", "times"]
    with store.write() as connection:
        insert(connection, audit, names, [(NOW, SAID, "", "", "signed in", str(k), 1) for k in range(count)])
    with store.read() as connection:
        found = sa.select(sa.func.count()).select_from(audit).where(audit.c.who == SAID)
        assert connection.scalar(found) == count


def test_how_a_cycle_ended_is_kept_whatever_a_plugin_said(database: str) -> None:
    store = open_store(database)
    with store.write() as connection:
        cycles.record(connection, "digits", cycles.End(NOW, False, True, SAID))
    with store.read() as connection:
        assert cycles.last(connection, ["digits"])["digits"].failures == 1


def test_what_sqlite_held_goes_into_postgresql(sqlite: str, tmp_path: Path, postgres: Callable[[], str]) -> None:
    store = open_store(sqlite)
    with store.write() as connection:
        outbox.add(connection, None, EVENT, ["hook"], NOW)
        connection.execute(deliveries.update().values(problem=SAID))
        assert "\0" in str(connection.scalar(sa.select(deliveries.c.problem)))
    target = connect(postgres())
    restore(backup(store, tmp_path / "opmon.backup").path, target)
    with target.read() as connection:
        assert connection.scalar(sa.select(deliveries.c.problem)) == "a b c"
        assert connection.scalar(sa.select(events.c.body)) == EVENT

"""What migrations make of rows that are there already."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

import opmon.store
from opmon.quantities import ACCURACY, MEAN_SQUARED_ERROR
from opmon.store import positions, revisions
from opmon.store.engine import Store, connect
from opmon.store.migrate import upgrade


def at_revision(database: str, revision: str) -> Store:
    store = connect(database)
    config = Config()
    config.set_main_option("script_location", f"{opmon.store.__path__[0]}/migrations")
    with store.write() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    return store


def add_round(connection: sa.Connection, number: int, problem: str, value: float, low: float, high: float) -> None:
    connection.execute(
        sa.text(
            "INSERT INTO rounds (id, monitor, number, state, model_name, model_version, plan, received, opened_at,"
            " waves, reported, ready) VALUES (:id, 'm', :id, 'closed', 'x', '1', :plan, 10,"
            " '2026-01-01 00:00:00+00:00', 1, 0, false)"
        ),
        {"id": number, "plan": f'{{"problem": "{problem}"}}'},
    )
    connection.execute(
        sa.text(
            "INSERT INTO estimates (id, round_id, revision, quantity, value, low, high, level, n, frame_size, response,"
            " method, provisional, notes, failures, labels_seen, made_at) VALUES (:id, :id, 0, 'accuracy',"
            " :value, :low, :high, 0.95, 5, 10, 1.0, 'srs/hall', false, '[]', 1, 5, '2026-01-01 00:00:00+00:00')"
        ),
        {"id": number, "value": value, "low": low, "high": high},
    )


def test_estimates_of_regressions_become_mean_squared_errors(empty_database: str) -> None:
    store = at_revision(empty_database, "0002")
    with store.write() as connection:
        add_round(connection, 1, "classification", 0.9, 0.8, 0.95)
        add_round(connection, 2, "regression", -2.2, -2.7, -1.8)
    upgrade(store)
    with store.read() as connection:
        share, error = (found.estimate for found in revisions.latest_estimates(connection, "m"))
    assert (share.quantity, share.value, share.low, share.high) == (ACCURACY, 0.9, 0.8, 0.95)
    assert error.quantity == MEAN_SQUARED_ERROR
    assert [round(each, 9) for each in (error.low, error.value, error.high)] == [2.8, 3.2, 3.7]


def test_where_monitors_stood_in_their_logs_is_kept(empty_database: str) -> None:
    """More parts than go into one row; of a part that was read twice the later position counts."""
    store = at_revision(empty_database, "0007")
    with store.write() as connection:
        add_round(connection, 1, "classification", 0.9, 0.8, 0.95)
        parts = [("m", f"part-{k}", 0, 5) for k in range(1203)] + [("m", "part-7", 5, 9), ("n", "part-7", 0, 1)]
        connection.execute(
            sa.text(
                "INSERT INTO slices (round_id, monitor, place, part, start, stop, rows, arrived_at, only_version)"
                " VALUES (1, :monitor, 0, :part, :start, :stop, 5, '2026-01-01 00:00:00+00:00', '')"
            ),
            [dict(zip(("monitor", "part", "start", "stop"), map(str, each), strict=True)) for each in parts],
        )
    upgrade(store)
    with store.read() as connection:
        found = positions.read(connection, "m")
        assert positions.read(connection, "n") == {"part-7": "1"}
    assert found == {f"part-{k}": "5" for k in range(1203)} | {"part-7": "9"}


def test_labels_are_kept_when_their_rounds_are_checked_no_more(empty_database: str) -> None:
    """They still belong to tasks that there are, and are numbered on."""
    label = (
        "INSERT INTO labels (task_id, round_id, annotator, truth, at, received_at)"
        " VALUES (:task, 1, :who, '7', '2026-01-01 00:00:00+00:00', '2026-01-01 00:00:00+00:00')"
    )
    store = at_revision(empty_database, "0019")
    with store.write() as connection:
        add_round(connection, 1, "classification", 0.9, 0.8, 0.95)
        connection.execute(
            sa.text(
                "INSERT INTO tasks (id, monitor, round_id, wave, place, position, input_id, prediction, variables,"
                " payload, created_at) VALUES (5, 'm', 1, 0, 0, 0, 'a', '7', '{}', '{}', '2026-01-01 00:00:00+00:00')"
            )
        )
        connection.execute(sa.text(label), [{"task": 5, "who": "ann"}, {"task": 5, "who": "ben"}])
    upgrade(store)
    with store.write() as connection:
        connection.execute(sa.text(label), {"task": 5, "who": "eve"})
        found = connection.execute(sa.text("SELECT id, task_id, round_id, annotator, truth, gold FROM labels")).all()
        checked = [key["referred_table"] for key in sa.inspect(connection).get_foreign_keys("labels")]
    assert sorted(map(tuple, found)) == [(k, 5, 1, who, "7", False) for k, who in enumerate(("ann", "ben", "eve"), 1)]
    assert checked == ["tasks"]
    with pytest.raises(sa.exc.IntegrityError), store.write() as connection:
        connection.execute(sa.text(label), {"task": 6, "who": "ann"})

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import DatabaseUnavailable
from opmon.queries.rounds import round_views
from opmon.stages.estimate import read_answers
from opmon.stages.failure_groups import group_failures
from opmon.store import rounds


def closed_round(workbench: Any, database: str) -> Any:
    """A census of 300 digits, a quarter of them with their pixels mixed up, which come from one country."""
    path = workbench.write_window(300, 5)
    table = pq.read_table(path)
    pixels = np.stack(table["pixels"].to_pylist())
    rng = np.random.default_rng(0)
    mixed = rng.random(300) < 0.25
    pixels[mixed] = rng.permuted(pixels[mixed], axis=1)
    column = table.schema.get_field_index("pixels")
    table = table.set_column(
        column, table.schema.field("pixels"), pa.array(pixels.tolist(), table.schema.field("pixels").type)
    )
    pq.write_table(table.append_column("country", [["DE" if each else "FR" for each in mixed]]), path)
    shape = {"min_inputs": 300, "max_inputs": 300, "max_age": "3650d"}
    monitor = workbench.monitor(database, sampler={"type": "srs", "budget": 200}, round=shape)
    monitor.advance()
    workbench.answer(monitor)
    monitor.advance()
    return monitor


def test_a_round_tells_what_its_failures_have_in_common(workbench: Any, sqlite: str) -> None:
    monitor = closed_round(workbench, sqlite)
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        ((view,),) = round_views(connection, [(monitor.settings.watch, [round_])], datetime.now(UTC))
    assert round_.state == "closed"
    first = view.failure_groups[0]
    assert first.words == ("country = DE",)
    assert first.share is not None
    assert first.low is not None
    assert first.high is not None
    assert 0.5 < first.low < first.share < first.high <= 1
    assert len(first.examples) == 5
    assert sum(group.failures for group in view.failure_groups) == view.failures
    told = monitor.registry.download(round_.run_id, "failures/groups.json", workbench.folder / "told")
    assert json.loads(told.read_text())[0]["words"] == list(first.words)
    page = monitor.registry.download(round_.run_id, "failures/failures.html", workbench.folder / "told").read_text()
    assert first.name in page
    assert "Said where it is true" in page
    assert "what the model said in columns" in page


def test_told_twice_groups_are_there_once(workbench: Any, sqlite: str) -> None:
    monitor = closed_round(workbench, sqlite)
    with monitor.store.write() as connection:
        rounds.update(connection, rounds.get(connection, workbench.name, 1).id, reported=-1)
    monitor.advance()
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        ((view,),) = round_views(connection, [(monitor.settings.watch, [round_])], datetime.now(UTC))
    assert view.failure_groups


def test_groups_are_not_left_out_because_the_database_was_away(workbench: Any, sqlite: str) -> None:
    monitor = closed_round(workbench, sqlite)
    with monitor._at_work() as work, work.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        answers = read_answers(connection, round_)
    with monitor.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE rounds RENAME TO away")
    with pytest.raises(DatabaseUnavailable):
        group_failures(work, round_, answers)

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from opmon.binding import bound
from opmon.cli._causes import cause_lines
from opmon.queries.rounds import round_views
from opmon.stages import looked_at
from opmon.store import attachments, queue, rounds
from opmon.types.grouped import FailureGroup

HARMED = 4
"""From this round on all pictures are shifted."""


def lived(workbench: Any, database: str, number: int, **changes: object) -> Any:
    """A monitor after so many rounds; since :data:`HARMED` production shifts all pictures by two pixels."""
    monitor = workbench.monitor(database, sampler={"type": "srs", "budget": 100}, **changes)
    for window in range(1, number + 1):
        path = workbench.write_window()
        if window >= HARMED:
            _shift(path)
        monitor.advance()
        workbench.answer(monitor)
        monitor.advance()
    return monitor


def _shift(path: Any) -> None:
    table = pq.read_table(path)
    pictures = np.stack(table["pixels"].to_pylist()).reshape(-1, 8, 8)
    pictures = np.concatenate((np.zeros_like(pictures[:, :, :2]), pictures[:, :, :-2]), axis=2).reshape(-1, 64)
    column = table.schema.get_field_index("pixels")
    field = table.schema.field("pixels")
    pq.write_table(table.set_column(column, field, pa.array(pictures.tolist(), field.type)), path)


def view_of(workbench: Any, monitor: Any, number: int) -> Any:
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, number)
        ((view,),) = round_views(connection, [(monitor.settings.watch, [round_])], datetime.now(UTC))
    return view


def test_a_round_that_is_harmed_as_a_whole_tells_since_when_and_what_changed(workbench: Any, database: str) -> None:
    monitor = lived(workbench, database, 5)
    view = view_of(workbench, monitor, 5)
    first: FailureGroup = view.failure_groups[0]
    assert first.name == "since 01 Mar 2026, 04:00 UTC (round 4)"
    assert (first.since, first.since_round, first.rounds) == ("2026-03-01T04:00:00+00:00", HARMED, (1, 5))
    assert first.differing is not None
    assert first.differing.words == "pictures that are shifted to the right"
    assert first.share is not None
    assert first.share > 0.5
    assert first.contrast().startswith("Over rounds 1 to 5, the model fails ")
    told_there = " ".join(str(line) for line in cause_lines(view.failure_groups))
    assert "times as often as before" in told_there
    assert sum(group.failures for group in view.failure_groups) == view.failures
    assert all(example.startswith("w5-") for group in view.failure_groups for example in group.examples)
    told = monitor.registry.download(view.run_id, "failures/groups.json", workbench.folder / "told")
    assert FailureGroup.of(json.loads(told.read_text())[0]) == first
    page = monitor.registry.download(view.run_id, "failures/failures.html", workbench.folder / "told").read_text()
    assert first.name in page
    assert bound(first.difference) in page
    earlier = view_of(workbench, monitor, 3)
    assert not any(group.since for group in earlier.failure_groups)


def test_the_rounds_before_are_read_as_far_as_there_is_room(
    workbench: Any, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = lived(workbench, sqlite, 3)
    with monitor.store.read() as connection:
        third = rounds.get(connection, workbench.name, 3)
        second = rounds.get(connection, workbench.name, 2)
        asked = {task.input_id for task in queue.answers(connection, second.id)}
    gone = min(asked)
    monitor.erase_input(gone, really=True)
    with monitor.store.read() as connection:
        found = looked_at._before(connection, third, 1000)
        few = looked_at._before(connection, third, 130)
        none = looked_at._before(connection, third, 20)
    assert [part.round.number for part in found] == [2, 1]
    assert {task.input_id for task in found[0].tasks} == asked - {gone}
    assert all(task.payload for part in found for task in part.tasks)
    assert [(part.round.number, len(part.tasks) <= 100) for part in few] == [(2, True), (1, True)]
    assert sum(len(part.tasks) for part in few) <= 130
    assert none == []


def test_another_version_is_another_matter(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    own = workbench.sibling(tmp_path / "own")
    monitor = lived(own, sqlite, 2)
    own.new_version()
    own.write_window()
    monitor.advance()
    own.answer(monitor)
    monitor.advance()
    with monitor.store.read() as connection:
        third = rounds.get(connection, own.name, 3)
        assert third.model_version == "2"
        assert looked_at._before(connection, third, 1000) == []


def test_of_heavy_pictures_few_are_read_again(workbench: Any, sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    photos = workbench.folder / "photos"
    photos.mkdir()
    monitor = workbench.monitor(
        sqlite,
        scoring={"by": "logged"},
        classes=["cat", "dog"],
        sampler={"type": "srs", "budget": 60},
        columns={"id": "input_id", "prediction": "answer", "image": "photo"},
        inputs={"image": {"column": "photo", "folder": "photos/"}},
        rules=[],
    )
    for _ in range(3):
        window = workbench.write_window()
        table = pq.read_table(window)
        names = [f"{name}.png" for name in table["input_id"].to_pylist()]
        for name in names:
            noise = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(noise).save(photos / name)
        answers = pa.array(rng.choice(["cat", "dog"], table.num_rows))
        table = table.drop_columns("pixels").append_column("photo", pa.array(names))
        pq.write_table(table.append_column("answer", answers), window)
        assert monitor.advance().problems == []
        workbench.truth |= dict.fromkeys(table["input_id"].to_pylist(), "cat")
        workbench.answer(monitor)
        monitor.advance()
    with monitor.store.read() as connection:
        third = rounds.get(connection, workbench.name, 3)
        everything = looked_at._before(connection, third, 1000)
        sizes = [attachments.size_of(task.payload) for part in everything for task in part.tasks]
        monkeypatch.setattr(looked_at, "HEAVY", 40 * max(sizes))
        few = looked_at._before(connection, third, 1000)
    assert min(sizes) > 500
    assert len(sizes) == 120
    assert [part.round.number for part in few] == [2]
    assert looked_at.FEWEST <= len(few[0].tasks) < 60

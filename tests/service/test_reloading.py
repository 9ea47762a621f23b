"""A changed configuration is taken over while the service runs; a wrong one is told, and the old goes on."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from opmon.cli.serve import _noted
from opmon.config import Settings, load
from opmon.service.reloading import Reloading
from opmon.service.scheduler import Service
from opmon.store import audit
from opmon.store.engine import open_store
from tests.web.world import monitor


class File:
    """opmon.yaml, and who takes it over."""

    def __init__(self, folder: Path, database: str) -> None:
        self.path, self.database = folder / "opmon.yaml", database
        self.write(digits=monitor())
        self.taken: list[Settings] = []
        self.reloading = Reloading(self.path, load(self.path), lambda: load(self.path), [self.taken.append])

    def write(self, text: str | None = None, *, more: dict[str, Any] | None = None, **monitors: Any) -> None:
        told = {"database": self.database, "monitors": monitors} | (more or {})
        self.path.with_suffix(".new").write_text(text if text is not None else yaml.safe_dump(told))
        self.path.with_suffix(".new").replace(self.path)


@pytest.fixture
def file(tmp_path: Path, sqlite: str) -> File:
    return File(tmp_path, sqlite)


def test_a_changed_file_is_taken_over(file: File, caplog: pytest.LogCaptureFixture) -> None:
    file.reloading.look()
    assert file.taken == []
    file.write(digits=monitor(seed=7), faces=monitor())
    with caplog.at_level(logging.INFO):
        file.reloading.look()
        file.reloading.look()
    (new,) = file.taken
    assert (new.monitor("digits").seed, list(new.monitors)) == (7, ["digits", "faces"])
    assert "the configuration was read again: new: faces; changed: digits" in caplog.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"text": "monitors: {digits: {mdel: x}}"}, "mdel"),
        ({"text": "monitors: ["}, "opmon.yaml"),
        (
            {"more": {"database": "sqlite:///other.db"}, "digits": monitor()},
            "database can only be changed by a restart",
        ),
    ],
)
def test_one_that_is_wrong_is_told_once_and_the_old_goes_on(
    file: File, change: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    file.write(**change)
    file.reloading.look()
    file.reloading.look()
    assert (file.taken, file.reloading.good) == ([], False)
    (told,) = (record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert words in told
    assert "the old goes on" in told
    file.write(digits=monitor())
    file.reloading.look()
    assert (len(file.taken), file.reloading.good) == (1, True)


def test_a_new_address_waits_for_the_next_start(file: File, caplog: pytest.LogCaptureFixture) -> None:
    file.write(more={"web": {"listen": "127.0.0.1:9999"}}, digits=monitor(seed=3))
    with caplog.at_level(logging.INFO):
        file.reloading.look()
    assert (file.taken[0].web.port, file.taken[0].monitor("digits").seed) == (8080, 3)
    assert "a restart takes over web" in caplog.text


def test_it_is_noted_who_may_have_done_it(file: File) -> None:
    store = open_store(file.database)
    file.reloading.note = _noted(store)
    file.write(digits=monitor(seed=7))
    file.reloading.look()
    with store.read() as connection:
        (entry,) = audit.listing(connection)
    assert (entry.act, entry.known_by, entry.about) == (audit.Act.RELOADED, audit.COMMAND, "changed: digits")


def test_a_service_keeps_what_did_not_change(file: File) -> None:
    file.write(digits=monitor(), faces=monitor())
    service = Service(load(file.path))
    service.timetable()
    assert sorted(service.table.due()) == ["digits", "faces"]
    kept = service.monitors["digits"]
    file.write(digits=monitor(), words=monitor(), faces=monitor(seed=5))
    changed = service.monitors["faces"]
    service.take(load(file.path))
    assert service.monitors["digits"] is kept
    assert service.monitors["faces"] is not changed
    assert service.table.due() == ["words"], "whose schedule is the same is not begun anew"
    service.work("gone", True)

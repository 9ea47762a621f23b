"""A changed configuration is taken over while the service runs; a wrong one is told, and the old goes on."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from opmon.cli.serve import _noted
from opmon.config import Settings, load
from opmon.errors import ConfigError
from opmon.logs.repeats import Repeats
from opmon.service.reloading import AGAIN_SECONDS, GONE_SECONDS, SETTLED_SECONDS, Reloading
from opmon.service.scheduler import Service
from opmon.store import audit
from opmon.store.engine import open_store
from tests.patience import LONGEST, until
from tests.web.world import monitor


class File:
    """opmon.yaml, and who takes it over."""

    def __init__(self, folder: Path, database: str) -> None:
        self.path, self.database = folder / "opmon.yaml", database
        self.write(digits=monitor())
        self.taken: list[Settings] = []
        self.now = 0.0
        self.reloading = self.looked_after(lambda: load(self.path))

    def looked_after(self, load_: Callable[[], Settings]) -> Reloading:
        return Reloading(self.path, load(self.path), load_, [self.taken.append], monotonic=lambda: self.now)

    def look(self) -> None:
        """What a service does within seconds of a change."""
        self.reloading.look()
        self.now += SETTLED_SECONDS
        self.reloading.look()

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
        file.look()
        file.look()
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
    file.look()
    file.look()
    assert (file.taken, file.reloading.good) == ([], False)
    (told,) = (record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert words in told
    assert "the old goes on" in told
    file.write(digits=monitor())
    file.look()
    assert (len(file.taken), file.reloading.good) == (1, True)


def test_each_change_that_is_refused_is_told_and_no_repeated_try(file: File, caplog: pytest.LogCaptureFixture) -> None:
    for threshold in (1.5, 1.75):  # where only a number differs, a log tells a problem once
        file.write(digits=monitor(rules=[{"type": "accuracy_level", "threshold": threshold}]))
        for _ in range(3):
            file.look()
            file.now += AGAIN_SECONDS
    file.reloading.look(True)
    repeats = Repeats()
    told = [record.getMessage() for record in caplog.records if repeats.filter(record)]
    assert [line.rpartition("got ")[2].split()[0] for line in told] == ["1.5", "1.75", "1.75"]


def test_a_new_address_waits_for_the_next_start(file: File, caplog: pytest.LogCaptureFixture) -> None:
    file.write(more={"web": {"listen": "127.0.0.1:9999"}}, digits=monitor(seed=3))
    with caplog.at_level(logging.INFO):
        file.look()
    assert (file.taken[0].web.port, file.taken[0].monitor("digits").seed) == (8080, 3)
    assert "a restart takes over web" in caplog.text


def test_it_is_noted_who_may_have_done_it(file: File) -> None:
    store = open_store(file.database)
    file.reloading.note = _noted(store)
    file.write(digits=monitor(seed=7))
    file.look()
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


def test_half_a_file_is_not_taken_over(file: File) -> None:
    """Also where it is a good configuration: that of fewer monitors."""
    file.write(faces=monitor(), words=monitor())
    whole = file.path.read_text()
    file.path.write_text(whole[: whole.index("  words")])
    assert list(load(file.path).monitors) == ["faces"]
    file.reloading.look()
    file.now += SETTLED_SECONDS / 2
    file.reloading.look()
    with file.path.open("a") as writing:
        writing.write(whole[whole.index("  words") :])
    file.look()
    assert [list(new.monitors) for new in file.taken] == [["faces", "words"]]


def test_a_file_that_somebody_writes_to_while_it_is_read_is_read_again(file: File) -> None:
    def load_() -> Settings:
        read = load(file.path)
        if read.monitor("digits").seed == 1:
            file.write(digits=monitor(seed=2))
        return read

    file.reloading = file.looked_after(load_)
    file.write(digits=monitor(seed=1))
    file.look()
    assert file.taken == []
    file.look()
    assert [new.monitor("digits").seed for new in file.taken] == [2]


def test_a_file_that_never_stands_still_is_read_all_the_same(file: File) -> None:
    for seconds in range(40):
        file.write(digits=monitor(seed=seconds + 1))
        file.reloading.look()
        file.now += SETTLED_SECONDS / 2
    assert [new.monitor("digits").seed for new in file.taken] == [1 + int(AGAIN_SECONDS)]


def test_one_that_could_not_be_read_is_tried_again(file: File, caplog: pytest.LogCaptureFixture) -> None:
    """A right to read that comes later changes neither the file's content nor its time."""
    failing = [True]

    def load_() -> Settings:
        if failing[0]:
            raise ConfigError("opmon.yaml cannot be read: Permission denied")
        return load(file.path)

    file.reloading = file.looked_after(load_)
    file.write(digits=monitor(seed=7))
    file.look()
    failing[0] = False
    file.look()
    assert (file.taken, file.reloading.good) == ([], False)
    file.now += AGAIN_SECONDS
    file.look()
    assert ([new.monitor("digits").seed for new in file.taken], file.reloading.good) == ([7], True)


def test_a_file_that_is_gone_for_good_is_told(file: File, caplog: pytest.LogCaptureFixture) -> None:
    away = file.path.rename(file.path.with_name("away.yaml"))
    file.look()
    assert caplog.records == [], "it may be about to be replaced"
    file.now = GONE_SECONDS
    file.look()
    assert not file.reloading.good
    (told,) = (record.getMessage() for record in caplog.records)
    assert "the old goes on" in told
    away.rename(file.path)
    file.look()
    assert file.reloading.good


def test_a_file_that_hangs_holds_nobody_up(
    file: File, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("opmon.service.reloading.READ_SECONDS", 0.2)
    looking = file.reloading
    away = file.path.rename(file.path.with_name("away.yaml"))
    os.mkfifo(file.path)  # whoever opens it waits for one who writes
    file.look()
    file.look()
    assert (file.taken, looking.good) == ([], False)
    (told,) = (record.getMessage() for record in caplog.records)
    assert "could not be read within 0.2 s; does the disk hang" in told
    file.path.write_text(away.read_text())  # the one who waits reads on, in vain
    file.write(digits=monitor(seed=7))
    until(lambda: looking._hanging is not None and looking._hanging.done())
    file.look()
    assert ([new.monitor("digits").seed for new in file.taken], looking.good) == ([7], True)


HUNG_ON_SIGHUP = """
import os, signal, threading, time
from opmon.service.stopping import Signals
def reload():
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait()
Signals(lambda: print("stopped", flush=True) or os._exit(5), reload).listen()
os.kill(os.getpid(), signal.SIGHUP)
while True:
    time.sleep(0.05)
"""


def test_a_sighup_whose_configuration_hangs_is_in_no_way_of_a_sigterm() -> None:
    ended = subprocess.run([sys.executable, "-c", HUNG_ON_SIGHUP], timeout=LONGEST, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (5, "stopped\n"), ended.stderr


def test_it_is_taken_over_by_all_or_by_nobody(file: File) -> None:
    def broken(new: Settings) -> None:
        if new.monitor("digits").seed:
            raise OSError("its guidelines are gone")

    file.reloading.takers.append(broken)
    file.write(digits=monitor(seed=7))
    file.look()
    assert [each.monitor("digits").seed for each in file.taken] == [7, 0]
    assert (file.reloading.good, file.reloading.settings.monitor("digits").seed) == (False, 0)


def test_a_monitor_beside_others_is_not_called_changed(file: File, caplog: pytest.LogCaptureFixture) -> None:
    file.write(faces=monitor(), digits=monitor())
    with caplog.at_level(logging.INFO):
        file.look()
    assert "the configuration was read again: new: faces" in caplog.messages


def test_a_configuration_is_taken_over_while_the_database_is_away(file: File, caplog: pytest.LogCaptureFixture) -> None:
    service = Service(load(file.path))
    service.timetable()
    assert service.table.due() == ["digits"]
    file.write(digits=monitor(), words=monitor())
    with service.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE ticks RENAME TO away")
    service.take(load(file.path))
    with service.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO ticks")
    begun: list[str] = []
    service.crew.want = lambda name, *, open_new: begun.append(name)  # type: ignore[method-assign]
    service.look()
    assert begun == ["words"]

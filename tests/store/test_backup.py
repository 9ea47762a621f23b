"""A backup holds all of a database, of either kind, and goes into either; half of one is never anywhere."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from opmon.errors import DatabaseUnavailable, InputError, LeaseHeld
from opmon.locks import try_lock
from opmon.store import examining, workers
from opmon.store.backup import backup, opened
from opmon.store.engine import Store, connect, open_store
from opmon.store.leases import hold
from opmon.store.migrate import HEAD, schema_of
from opmon.store.restoring import restore
from opmon.store.workers import Worker
from tests.upgrade.filled import filled
from tests.upgrade.test_every_schema import contents


@pytest.fixture
def full(empty_database: str, tmp_path: Path) -> Store:
    """A database of each kind with rows in every table."""
    if empty_database.startswith("sqlite"):
        shutil.copyfile(filled(HEAD), tmp_path / "opmon.db")
    else:
        restore(filled(HEAD), connect(empty_database))
    return open_store(empty_database)


def other_kind(store: Store, folder: Path, postgres: Callable[[], str]) -> Store:
    return connect(postgres() if store.is_sqlite else f"sqlite:///{folder / 'other.db'}")


def killed_at(statement: int, store: Store, work: Callable[[Store], object]) -> bool:
    """Do the work in a process that is killed before its n-th statement; false where it was done before."""
    address = store.engine.url.render_as_string(hide_password=False)
    store.close()
    child = os.fork()
    if not child:
        try:
            mine, left = connect(address), [statement]

            def count(*_: object) -> None:
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

            sa.event.listen(sa.engine.Engine, "before_cursor_execute", count)
            work(mine)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_what_was_in_one_database_is_then_in_the_other(
    full: Store, tmp_path: Path, postgres: Callable[[], str]
) -> None:
    """And new rows are numbered behind those that came."""
    made = backup(full, tmp_path / "copies" / "opmon.backup")
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in made.path.parent.iterdir()] == ["opmon.backup"]
    target = other_kind(full, tmp_path, postgres)
    restored = restore(made.path, target)
    before, after = contents(full), contents(target)
    assert restored.copied.total == made.rows == sum(map(len, before.values()))
    del before["leases"], after["leases"]
    assert after == before
    with target.write() as connection:
        last = connection.scalar(sa.text("SELECT max(id) FROM labels"))
        again = (
            "INSERT INTO labels (task_id, round_id, annotator, at, received_at) SELECT task_id, round_id, 'new', at, at"
        )
        connection.execute(sa.text(f"{again} FROM labels WHERE id = :last"), {"last": last})
        assert connection.scalar(sa.text("SELECT max(id) FROM labels")) == last + 1


def test_a_backup_is_of_one_moment_while_others_write(full: Store, tmp_path: Path) -> None:
    """What is written while it is made is in it whole or not at all."""
    before = contents(full)
    event = sa.text("UPDATE rounds SET problem = 'written meanwhile'")

    def meanwhile(connection: sa.Connection, cursor: object, statement: str, *_: object) -> None:
        if "version_num" in statement and not written:
            written.append(True)
            address = full.engine.url.render_as_string(hide_password=False)
            with Store(sa.create_engine(address)).engine.begin() as other:
                other.execute(event)

    written: list[bool] = []
    sa.event.listen(full.engine, "after_cursor_execute", meanwhile)
    if full.is_sqlite:
        written.append(True)  # it copies its pages in one step, in which there is no statement to write after
    made = backup(full, tmp_path / "opmon.backup")
    file = opened(made.path)
    assert contents(file) == before
    file.close()


def test_a_database_that_holds_something_is_left_as_it_is(full: Store, tmp_path: Path) -> None:
    before = contents(full)
    with pytest.raises(InputError, match=r"holds 19 rounds and .* was not touched.*--replace"):
        restore(filled("0009"), full)
    with hold(full, "opened"), pytest.raises(LeaseHeld, match=r"not touched.*monitor 'opened' is being worked on"):
        restore(filled("0009"), full, replace=True)
    after = contents(full)
    del before["leases"], after["leases"]
    assert after == before


def test_a_database_that_a_service_runs_on_is_left_as_it_is(full: Store) -> None:
    """Though it rests between two cycles, and holds no lease."""
    now = datetime.now(UTC)
    there = Worker("a", "process 7 on box", "all", "1", now, now, {}, {})
    with full.write() as connection:
        workers.say(connection, there)
    before = contents(full)
    with pytest.raises(LeaseHeld, match=r"not touched, for opmon serve runs on it: process 7 on box\. Stop it"):
        restore(filled("0009"), full, replace=True)
    assert contents(full) == before
    with full.write() as connection:
        workers.say(connection, replace(there, seen_at=now - timedelta(minutes=2)))
    restore(filled("0009"), full, replace=True)


def test_tables_without_rows_are_no_obstacle(sqlite: str, tmp_path: Path) -> None:
    store = open_store(sqlite)
    restore(filled(HEAD), store)
    assert contents(store)["labels"]


def test_what_is_replaced_is_gone_and_nobody_writes_with_an_old_lease(full: Store, tmp_path: Path) -> None:
    with hold(full, "opened") as lease:
        old = lease.token
    restore(filled("0012"), full, replace=True)
    assert schema_of(full) == HEAD
    with full.write() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM annotators")) == 0, "0012 had none"
    with hold(full, "opened") as lease:
        assert lease.token > old


def test_a_restore_that_is_killed_changed_nothing(full: Store, tmp_path: Path) -> None:
    before = contents(full)
    for statement in (2, 60, 120):
        assert killed_at(statement, full, lambda mine: restore(filled("0015"), mine, replace=True))
        assert contents(full) == before


def test_a_backup_that_is_killed_is_not_there(full: Store, tmp_path: Path) -> None:
    path = tmp_path / "opmon.backup"
    killed = sum(killed_at(statement, full, lambda mine: backup(mine, path)) for statement in (1, 2, 3, 40))
    assert killed
    assert not path.exists()
    assert backup(full, path).rows > 800
    assert [each.name for each in tmp_path.glob("*.partial")] == []


def test_a_backup_is_never_written_over(sqlite: str, tmp_path: Path) -> None:
    store = open_store(sqlite)
    backup(store, tmp_path / "opmon.backup")
    with pytest.raises(InputError, match="is there already"):
        backup(store, tmp_path / "opmon.backup")
    with pytest.raises(InputError, match="nothing to back up"):
        backup(connect(f"sqlite:///{tmp_path / 'empty.db'}"), tmp_path / "other.backup")
    assert not (tmp_path / "other.backup").exists()


def test_a_backup_onto_a_disk_that_is_full_is_told_in_words_and_is_not_there(full: Store, tmp_path: Path) -> None:
    """The size of files is bounded for a moment: a disk cannot be filled here."""
    path = tmp_path / "opmon.backup"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, before[1]))
    try:
        with pytest.raises(DatabaseUnavailable, match=r"opmon.backup cannot be written: its disk gives errors, or is"):
            backup(full, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [each.name for each in tmp_path.iterdir() if "backup" in each.name] == []
    assert backup(full, path).rows > 800


def test_two_processes_do_not_write_one_backup(full: Store, tmp_path: Path) -> None:
    path = tmp_path / "opmon.backup"
    with (tmp_path / ".opmon.backup.partial").open("w") as other:
        assert try_lock(other.fileno())
        with pytest.raises(InputError, match="another process is writing"):
            backup(full, path)
        assert (tmp_path / ".opmon.backup.partial").exists(), "it is the other's"
    assert backup(full, path).rows > 800


@pytest.mark.parametrize("is_there", [False, True])
def test_one_that_another_process_has_just_written_stays_whole(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """It ends between the opening of the file and its lock, and a third one may have begun by then."""
    path, partial = tmp_path / "opmon.backup", tmp_path / ".opmon.backup.partial"

    def late(held: int) -> bool:
        os.write(held, b"all of it")
        partial.rename(path)
        if is_there:
            partial.touch()
        return try_lock(held)

    monkeypatch.setattr("opmon.store.backup.try_lock", late)
    with pytest.raises(InputError, match="another process is writing"):
        backup(full, path)
    assert path.read_bytes() == b"all of it"
    assert partial.exists() == is_there


def damaged(path: Path) -> None:
    shutil.copyfile(filled(HEAD), path)
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 3000)


def newer(path: Path) -> None:
    shutil.copyfile(filled(HEAD), path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9001'")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "there is no backup"),
        (lambda path: path.write_text("labels,please"), "is no backup"),
        (lambda path: sqlite3.connect(path).execute("CREATE TABLE cats (name)"), "holds no tables of opmon's"),
        (damaged, "damaged|malformed"),
        (newer, "newer opmon.*schema 9001"),
    ],
)
def test_what_is_no_backup_is_refused_in_words(
    make: Callable[[Path], object], words: str, sqlite: str, tmp_path: Path
) -> None:
    make(tmp_path / "file")
    with pytest.raises(InputError, match=words):
        restore(tmp_path / "file", open_store(sqlite))


def test_rows_that_cannot_be_are_told(full: Store) -> None:
    assert list(examining.problems(full)) == []
    with full.write() as connection:
        connection.exec_driver_sql("UPDATE rounds SET asked = asked + 1 WHERE number = 1 AND monitor = 'half'")
        connection.exec_driver_sql("UPDATE labels SET round_id = round_id + 1 WHERE id = 1")
    assert list(examining.problems(full)) == [
        "1 label names another round than the task does",
        "1 round counts tasks wrongly: half 1",
    ]


def test_rows_of_nobody_and_damaged_pages_are_told(sqlite: str, tmp_path: Path) -> None:
    path = tmp_path / "opmon.db"
    shutil.copyfile(filled(HEAD), path)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM rounds WHERE id = 1")
    assert "21 rows of tasks: the row of rounds that round_id names is not there" in list(
        examining.problems(open_store(sqlite))
    )
    damaged(tmp_path / "damaged.db")
    with pytest.raises((DatabaseUnavailable, AssertionError), match=r"damaged"):
        raise AssertionError("; ".join(examining.problems(connect(f"sqlite:///{tmp_path / 'damaged.db'}"))))

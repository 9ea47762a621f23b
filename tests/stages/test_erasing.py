"""What was kept long enough goes, and what one input held goes at once, wherever opmon put it."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.abc import Registry
from opmon.errors import RegistryUnavailable
from opmon.store import queue, rounds

KEEP = {"payloads": "30d", "frames": "60d", "artifacts": "1y"}


def label_all(monitor: Any, workbench: Any) -> None:
    monitor.advance()
    workbench.answer(monitor, wrong=0.4)
    monitor.advance()


def round_of(monitor: Any, number: int = 1) -> Any:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


def bytes_of(folder: Path, *leave_out: str) -> dict[str, bytes]:
    """All files below a folder as bytes, Parquet decoded: what is looked for is in none of them."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not any(name in str(path) for name in leave_out):
            content = path.read_bytes()
            found[str(path)] = str(pq.read_table(path).to_pylist()).encode() if path.suffix == ".parquet" else content
    return found


def test_each_kind_goes_in_its_time_and_what_was_found_out_stays(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock, keep=KEEP)
    workbench.write_window()
    label_all(monitor, workbench)
    run = round_of(monitor).run_id
    all_files = set(monitor.registry.files(run))
    assert {"frame.parquet", "drawn-000.parquet", "round.html", "failures/failures.parquet"} <= all_files
    assert monitor.prune(really=True) == ()
    for days, kinds, gone in (
        (31, ("payloads",), {"drawn-000.parquet", "round.html"}),
        (30, ("frames",), {"frame.parquet"}),
        (400, ("artifacts",), all_files),
    ):
        clock.pass_(days=days)
        (said,) = monitor.prune(really=False)
        assert (said.kinds, said.bytes > 500) == (kinds, True)
        assert monitor.prune(really=True) == (said,)
        assert gone.isdisjoint(monitor.registry.files(run)), kinds
        assert monitor.prune(really=True) == ()
    assert monitor.registry.files(run) == {}
    assert round_of(monitor).pruned == ["artifacts", "frames", "payloads"]
    workbench.write_window()
    label_all(monitor, workbench)
    assert round_of(monitor, 2).state == "closed", "the monitor goes on"


def test_an_input_is_forgotten_everywhere_and_again_changes_nothing(workbench: Any, sqlite: str, clock: Any) -> None:
    """A drawn input that was a failure: a text that is in it is then in no file and no page of the database."""
    secret = [f"Erika Mustermann {k} phone 0151-{k:07}" for k in range(200)]
    labels = {"provider": {"type": "files", "path": str(workbench.folder / "labels"), "form": "jsonl"}}
    monitor = workbench.monitor(sqlite, clock, labels=labels, drift={"enabled": True})
    workbench.write_window(note=secret)
    label_all(monitor, workbench)
    round_ = round_of(monitor)
    folder = workbench.folder / "got"
    failed = pq.read_table(monitor.registry.download(round_.run_id, "failures/failures.parquet", folder))
    name, text = failed["input_id"][0].as_py(), failed["note"][0].as_py().encode()
    labelled = pq.read_table(monitor.registry.download(round_.run_id, "labels.parquet", folder)).num_rows
    other = failed["note"][1].as_py().encode()

    said = monitor.erase_input(name, really=False)
    places = "\n".join(said.found)
    for place in (
        "the database: 1 task",
        "'files'",
        "drawn-000.parquet",
        "drift_sample.parquet",
        "failures of round 1",
    ):
        assert place in places
    assert monitor.erase_input(name, really=False) == said, "nothing was done yet"

    told = monitor.erase_input(name, really=True)
    assert told.found == said.found
    assert [each.split(":")[0] for each in told.unreached] == ["production's own log"]
    monitor.store.close()
    artifacts = Path(workbench.tracking_uri.removeprefix("sqlite:///")).parent
    left = {
        **bytes_of(workbench.folder, "production", "/got/"),
        **bytes_of(artifacts / "mlartifacts" / f"opmon-{workbench.name}"),
    }
    assert [path for path, content in left.items() if text in content] == []
    assert len([path for path, content in left.items() if other in content]) >= 3, "others are left as they were"

    again = monitor.erase_input(name, really=True)
    assert [place for place in again.found if "label provider" not in place] == []
    folder = workbench.folder / "then"
    assert pq.read_table(monitor.registry.download(round_.run_id, "labels.parquet", folder)).num_rows == labelled
    assert "round.html" in monitor.registry.files(round_.run_id)
    workbench.write_window(note=secret)
    label_all(monitor, workbench)
    assert round_of(monitor, 2).state == "closed", "the monitor goes on"


def test_an_answer_that_cannot_be_taken_keeps_no_input_at_the_provider(workbench: Any, sqlite: str, clock: Any) -> None:
    labels = {"provider": {"type": "files", "path": str(workbench.folder / "labels"), "form": "jsonl"}}
    monitor = workbench.monitor(sqlite, clock, labels=labels)
    workbench.write_window(note=[f"Erika Mustermann {k}" for k in range(200)])
    monitor.advance()
    (path,) = (workbench.folder / "labels").glob("*/*.jsonl")
    task, other = (json.loads(line) for line in path.read_text().splitlines()[:2])
    path.with_name("answers.jsonl").write_text(json.dumps({"task_key": other["task_key"], "label": "no class"}))
    told = monitor.erase_input(task["input_id"], really=True)
    assert [each.split(":")[0] for each in told.unreached if "label provider" in each] == []
    assert task["task_key"] not in path.read_text()
    assert other["task_key"] in path.read_text()


def in_the_database(folder: Path, text: bytes) -> list[str]:
    """The files of the database in which a text is."""
    return [path.name for path in sorted(folder.glob("opmon.db*")) if text in path.read_bytes()]


def asked_about(monitor: Any, workbench: Any) -> tuple[str, bytes]:
    """A drawn input, and a text that is in it."""
    workbench.write_window(note=[f"Erika Mustermann {k} phone 0151-{k:07}" for k in range(200)])
    label_all(monitor, workbench)
    with monitor.store.read() as connection:
        (first, *_) = queue.answers(connection, 1)
    text = first.payload["note"]
    assert isinstance(text, str)
    return first.input_id, text.encode()


def test_what_was_forgotten_is_in_no_file_of_a_database_that_others_have_open(workbench: Any, tmp_path: Path) -> None:
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}?timeout=0.5")
    name, text = asked_about(monitor, workbench)
    with closing(sqlite3.connect(tmp_path / "opmon.db", isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM rounds").fetchone()
        assert "the database's file: others read or write it" in monitor.erase_input(name, really=True).unreached[-1]
        assert in_the_database(tmp_path, text) != []
        other.execute("COMMIT")
        assert not any("database" in each for each in monitor.erase_input(name, really=True).unreached)
        assert in_the_database(tmp_path, text) == []


def test_what_was_pruned_is_in_no_file_of_a_database_that_others_have_open(
    workbench: Any, sqlite: str, clock: Any, tmp_path: Path
) -> None:
    monitor = workbench.monitor(sqlite, clock, keep=KEEP)
    _, text = asked_about(monitor, workbench)
    clock.pass_(days=31)
    with closing(sqlite3.connect(tmp_path / "opmon.db", isolation_level=None)) as other:
        other.execute("SELECT count(*) FROM rounds").fetchone()
        assert in_the_database(tmp_path, text) != []
        assert len(monitor.prune(really=True)) == 1
        assert in_the_database(tmp_path, text) == []


def copy_world(folder: Path, into: Path) -> None:
    """All files below a folder in the place of those that are there; MLflow holds its own database open."""
    into.mkdir(exist_ok=True)
    for path in [path for path in into.iterdir() if not path.name.startswith("mlflow.db")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in [path for path in folder.iterdir() if not path.name.startswith("mlflow.db")]:
        shutil.copytree(path, into / path.name) if path.is_dir() else shutil.copy(path, into)


class Failing:
    """A registry of which one call, to read or to change the files of a run, gets no answer."""

    CALLS = ("files", "download", "log_artifact", "remove_file")

    def __init__(self, registry: Any, at: int) -> None:
        self._registry, self._left = registry, at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._registry, name)
        return partial(self._call, found) if name in self.CALLS else found

    def _call(self, found: Any, *args: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            raise RegistryUnavailable("no answer")
        return found(*args)

    def log_artifacts(self, run_id: str, directory: Path) -> None:
        Registry.log_artifacts(self, run_id, directory)  # type: ignore[arg-type]

    @property
    def has_failed(self) -> bool:
        return self._left <= 0


def test_wherever_it_is_cut_short_the_next_call_forgets_the_rest(workbench: Any, clock: Any, tmp_path: Path) -> None:
    """What tells where else an input is goes last, and a report that was taken away is made again."""
    world = workbench.sibling(tmp_path / "world")
    database = f"sqlite:///{world.folder / 'opmon.db'}"
    monitor = world.monitor(database, clock, drift={"enabled": True})
    world.write_window(note=[f"Erika Mustermann {k} phone 0151-{k:07}" for k in range(200)])
    label_all(monitor, world)
    run, got = round_of(monitor).run_id, tmp_path / "got"
    failed = pq.read_table(monitor.registry.download(run, "failures/failures.parquet", got))
    name, text = failed["input_id"][0].as_py(), failed["note"][0].as_py().encode()
    (got / "examples.html").write_bytes(text)
    monitor.registry.log_artifact(run, got / "examples.html", "robustness")
    before = set(monitor.registry.files(run))
    monitor.store.close()
    copy_world(world.folder, tmp_path / "before")

    for at in itertools.count(1):
        copy_world(tmp_path / "before", world.folder)
        failing = world.monitor(database, clock, drift={"enabled": True})
        failing.registry = Failing(monitor.registry, at)
        with suppress(RegistryUnavailable):
            failing.erase_input(name, really=True)
        if not failing.registry.has_failed:
            break
        told = world.monitor(database, clock, drift={"enabled": True}).erase_input(name, really=True)
        failing.store.close()
        assert [each.split(":")[0] for each in told.unreached] == ["production's own log"]
        left = bytes_of(world.folder, "production")
        assert [path for path, content in left.items() if text in content] == [], at
        assert before - set(monitor.registry.files(run)) == {"robustness/examples.html", "failures/failures.png"}, at
    assert at > 15, "it was cut short at every call"


@pytest.mark.parametrize("again", [False, True])
def test_rows_of_the_recorder_are_emptied_where_no_open_round_reads_them(
    workbench: Any, sqlite: str, clock: Any, again: bool
) -> None:
    """Also where opmon was killed between writing the file and noting where it stands in it."""
    path = workbench.write_window()
    table = pq.read_table(path).rename_columns(["id", "timestamp", "pixels"])
    table = table.append_column("inclusion", pa.array([1.0] * 200))
    path.unlink()
    path = path.with_name(f"recorder-{'0' * 32}-00000000.parquet")
    pq.write_table(table, path)
    changes = {"source": {"type": "recorder", "path": "production"}, "columns": {"id": "id", "timestamp": "timestamp"}}
    monitor = workbench.monitor(sqlite, clock, **changes)
    assert monitor.advance().problems == []
    told = monitor.erase_input("w1-7", really=True)
    assert told.found == [f"{path}: 1 row"]
    assert "a round that is still open reads it" in told.unreached[0]
    assert workbench.answer(monitor)
    assert monitor.advance().closed == 1
    before = path.stat()
    if again:
        from opmon.sources._own_files import erase

        erase(path.parent, "w1-7", {}, set(), really=False)
        with monitor.store.read() as connection:
            from opmon.store import positions

            erase(path.parent, "w1-7", positions.read(connection, workbench.name), set(), really=True)
    told = monitor.erase_input("w1-7", really=True)
    assert (told.found, told.unreached) == ([] if again else [f"{path}: 1 row"], [])
    rows = {row["id"]: row for row in pq.read_table(path).to_pylist()}
    assert set(rows["w1-7"]["pixels"]) == {None}
    assert None not in rows["w1-8"]["pixels"]
    assert (path.stat().st_mtime_ns, len(rows)) == (before.st_mtime_ns, 200)
    pq.write_table(
        table.set_column(0, "id", pa.array([f"w2-{k}" for k in range(200)])),
        path.with_name(path.name.replace("00000000.", "00000001.")),
    )
    workbench.truth |= {f"w2-{k}": workbench.truth[f"w1-{k}"] for k in range(200)}
    cycle = monitor.advance()
    assert (cycle.opened, cycle.problems) == (1, []), "the file that was written again is no other file"

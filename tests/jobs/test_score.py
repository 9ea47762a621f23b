"""Jobs of scoring: sent elsewhere, cut in shares, killed half done, and with another way to the scores."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.abc import Executor
from opmon.errors import SourceError, UnavailableError
from opmon.jobs import parts
from opmon.jobs.identity import identity
from opmon.jobs.job import ScoreJob
from opmon.jobs.parts import Part
from opmon.jobs.score import heard, score
from opmon.scoring.outputs.variables import FLOOR
from opmon.scoring.scored import Scored
from opmon.stages import assembly
from opmon.stages.open import open_round
from opmon.stages.score import PARTS
from opmon.stages.score_jobs import jobs_of
from opmon.store import rounds
from opmon.store.slices import slices_of
from opmon.types import Batch
from tests.forked import forks

ANY = {"min_inputs": 1, "max_inputs": 10_000}


@dataclass(frozen=True)
class Always:
    """Scores without any model: everything is a three."""

    asked: str
    """A file that says how many inputs were asked for."""
    fails_after: int = 1_000_000
    plain: tuple[int, ...] = ()
    """The batches of which it gives neither variables nor classes."""

    def open(self) -> Always:
        return self

    def score(self, batches: Iterable[Batch]) -> Iterator[Scored]:
        for number, batch in enumerate(batches):
            if number >= self.fails_after:
                raise KeyboardInterrupt
            rows = np.arange(batch.first_row, batch.first_row + batch.rows.num_rows)
            with Path(self.asked).open("a") as file:
                file.write(f"{len(rows)}\n")
            variables = {"confidence": np.ones(len(rows), np.float32)}
            told = {} if number in self.plain else {"classes": ("3", "4"), "chances": {"4": variables["confidence"]}}
            variables = {} if number in self.plain else variables
            yield Scored(0, rows, np.full(len(rows), "3"), variables, {}, **told)


@dataclass(frozen=True)
class Shares(Executor):
    """Runs jobs of one file each in this process."""

    rows: int = 1

    def run(self, function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[Any]:
        return map(function, pickle.loads(pickle.dumps(jobs)))


def job_of(monitor: Any, folder: Path) -> ScoreJob:
    """The one job of the only round."""
    with monitor._at_work() as work:
        open_round(work)
        with work.store.read() as connection:
            round_ = rounds.get(connection, work.name, 1)
            slices = slices_of(connection, round_.id)
        (job,) = jobs_of(work, round_, slices, folder)
        return job


def table_of(found: Sequence[Part]) -> pa.Table:
    return pa.concat_tables([pq.read_table(part.path).replace_schema_metadata(None) for part in found])


def frame_of(monitor: Any, folder: Path, name: str = "frame.parquet") -> pa.Table:
    """What MLflow has of the only round."""
    with monitor.store.read() as connection:
        run = rounds.get(connection, monitor.settings.name, 1).run_id
    return pq.read_table(monitor.registry.download(run, name, folder))


def asked(way: Always) -> list[int]:
    return [int(line) for line in Path(way.asked).read_text().splitlines()]


def test_a_job_scored_in_another_process_gives_the_same(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    for _ in range(3):
        workbench.write_window(said=["4"] * 200)
    job = job_of(workbench.monitor(sqlite, columns={"id": "input_id", "prediction": "said"}, round=ANY), tmp_path / "a")
    here = score(replace(job, part_rows=250))
    with forks().Pool(1) as pool:
        (there,) = pool.map(score, [replace(job, folder=tmp_path / "b")])
    assert [part.stop - part.start for part in here] == [400, 200]
    assert table_of(here).equals(table_of(there))
    assert sum(part.skew.differs for part in here if part.skew) == there[0].skew.differs > 500
    assert pickle.loads(pickle.dumps(here)) == here == score(replace(job, part_rows=250))


def test_a_killed_job_keeps_the_parts_it_finished(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    for _ in range(5):
        workbench.write_window()
    whole = job_of(workbench.monitor(sqlite, round=ANY), tmp_path / "parts")
    ways = [Always(str(tmp_path / name), fails_after=fails) for name, fails in (("one", 3), ("two", 1), ("three", 99))]
    for way in ways[:2]:
        with pytest.raises(KeyboardInterrupt):
            score(replace(whole, way=way, part_rows=300))
    progress: list[int] = []
    with heard(progress.append):
        done = score(replace(whole, way=ways[2], part_rows=300))
    assert [(part.start, part.stop, part.last) for part in done] == [
        (0, 400, False),
        (400, 800, False),
        (800, 1000, True),
    ]
    assert [len(asked(way)) for way in ways] == [3, 1, 3], "what was finished is not asked for again"
    assert sum(progress) == 1000
    calm = score(replace(whole, way=ways[2], folder=tmp_path / "calm"))
    assert table_of(done).equals(table_of(calm))


@pytest.mark.parametrize("plain", [(), (0,), (1, 3), (0, 1, 2)])
def test_what_only_some_batches_have_all_inputs_of_the_round_have(
    workbench: Any, sqlite: str, tmp_path: Path, plain: tuple[int, ...]
) -> None:
    for _ in range(4):
        workbench.write_window()
    job = job_of(workbench.monitor(sqlite, round=ANY), tmp_path / "parts")
    frames, way = [], Always(str(tmp_path / "asked"), plain=plain)
    for number, size in enumerate((200, 400, 800)):
        done = score(replace(job, way=way, part_rows=size, folder=tmp_path / str(number)))
        found = [part for part in done if part.rows]
        assert {part.classes for part in found} - {None} == {("3", "4")}
        frames.append(pa.concat_tables(assembly._tables(found, [None] * len(found), None, {})))
    certain = np.isin(np.arange(800) // 200, plain)
    for frame in frames:
        assert frame.drop_columns("chance.4").equals(frames[0].drop_columns("chance.4"))
        assert frame["variable.confidence"].to_pylist() == np.where(certain, np.float32(FLOOR), 1).tolist()
        assert np.isnan(frame["chance.4"].to_numpy()).tolist() == certain.tolist()


def test_parts_of_bounded_size_are_whole_or_not_there(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    workbench.write_window()
    job = job_of(workbench.monitor(sqlite, round=ANY), tmp_path / "parts")
    (part,) = score(job)
    part.path.rename(part.path.with_suffix(".1.partial"))
    assert parts.finished(job.folder) == []
    assert score(job) == (part,)


def test_a_round_in_shares_is_the_round_in_one(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    """Files that differ in a column and in its type: all of them decide together."""
    rng = np.random.default_rng(0)
    for number in range(4):
        path = workbench.write_window(size=60, age=pa.array(rng.integers(0, 9, 60)))
        table = pq.read_table(path)
        if number == 1:
            pq.write_table(table.drop_columns("age"), path)
        if number == 2:
            pq.write_table(table.set_column(3, "age", pa.array(rng.random(60))), path)
    drift = {"enabled": True, "max_rows": 100}
    frames, samples = [], []
    for number, executor in enumerate([None, Shares()]):
        monitor = workbench.monitor(f"sqlite:///{tmp_path}/{number}.db", round=ANY, drift=drift)
        if executor is not None:
            settings = monitor.settings.executor.model_copy(update={"plugin": executor})
            monitor.settings = monitor.settings.model_copy(update={"executor": settings})
        assert monitor.advance().problems == []
        frames.append(frame_of(monitor, tmp_path / str(number)))
        samples.append(frame_of(monitor, tmp_path / str(number), "drift_sample.parquet"))
    assert frames[0].num_rows == 240
    assert frames[0].equals(frames[1])
    assert samples[0].equals(samples[1])
    assert samples[0]["age"].type == pa.float64()


def test_a_round_killed_in_scoring_goes_on_with_its_parts(
    workbench: Any, sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        workbench.write_window()
    monkeypatch.setattr("opmon.stages.score_jobs.PART_ROWS", 200)
    monitor, calm = (workbench.monitor(each, round=ANY) for each in (sqlite, f"sqlite:///{tmp_path / 'calm.db'}"))
    progress: list[int] = []

    def dies(what: str, done: int, total: int | None) -> None:
        progress.append(done)
        if len(progress) == 3:
            raise KeyboardInterrupt

    monitor.progress = dies
    with pytest.raises(KeyboardInterrupt):
        monitor.advance()
    assert monitor.advance().problems == []
    assert progress == [0, 200, 400, 200, 400, 600, 800, 800], "two parts were there"
    assert calm.advance().problems == []
    facts = [frame_of(each, tmp_path / str(number)) for number, each in enumerate((monitor, calm))]
    assert facts[0].equals(facts[1])
    assert facts[0].num_rows == 800


def test_what_stops_a_round_is_read_anew_and_what_did_not_answer_is_not(
    workbench: Any, sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench.write_window()
    monitor = workbench.monitor(sqlite, round=ANY)
    for error, kept in ((UnavailableError("MLflow is away"), 1), (SourceError("these are other inputs"), 0)):

        def fails(*given: Any, error: Exception = error) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("opmon.stages.score.assemble", fails)
            assert str(error) in str(monitor.advance().problems[0])
        with monitor._at_work() as work, work.store.read() as connection:
            folder = work.round_folder(rounds.get(connection, workbench.name, 1)) / PARTS
        assert len(list(folder.glob("*/*/part-*.parquet"))) == kept
    assert monitor.advance().problems == []
    assert not folder.exists()


def test_jobs_of_another_configuration_have_other_folders(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    workbench.write_window()
    folder = tmp_path / "parts"
    one = job_of(workbench.monitor(sqlite, round=ANY), folder)
    score(one)
    again = job_of(workbench.monitor(sqlite, round=ANY), folder)
    assert (again.folder, identity(again)) == (one.folder, identity(one))
    other = job_of(workbench.monitor(sqlite, round=ANY, columns={"id": "input_id"}), folder)
    assert other.folder != one.folder
    assert not one.folder.exists(), "what no job of the round needs is removed"

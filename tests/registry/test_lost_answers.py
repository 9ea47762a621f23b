"""A real MLflow server behind a bad network: nothing is made twice, and nobody is kept waiting."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opmon.errors import InputError, RegistryUnavailable
from opmon.outgoing.breaker import Breaker
from opmon.registry import MlflowRegistry
from opmon.registry._calls import Calls, left_behind
from opmon.store import rounds
from tests.conftest import Workbench
from tests.patience import LONGEST
from tests.registry.proxy import BUSY, CUT, DRIP, LATE, LOSE, STALL, Proxy, proxy_to

NOW = datetime(2026, 11, 1, tzinfo=UTC)
CREATE = "POST .*/runs/create"


@pytest.fixture
def proxy(server: Any) -> Iterator[Proxy]:
    with proxy_to(server.uri) as made:
        yield made


@pytest.fixture
def registry(proxy: Proxy) -> MlflowRegistry:
    return MlflowRegistry(proxy.uri)


@pytest.fixture
def experiment(registry: MlflowRegistry) -> str:
    return registry.experiment(f"opmon/{uuid.uuid4().hex}")


def runs(server: Any, experiment: str) -> list[Any]:
    from mlflow import MlflowClient

    return list(MlflowClient(server.uri).search_runs([experiment]))


RUN, NEW = MlflowRegistry.run, MlflowRegistry.new_run

# --- a run is made once -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lost", "ask"), [(1, RUN), (2, RUN), (3, RUN), (1, NEW), (3, NEW)])
def test_a_run_whose_answer_is_lost_is_made_once(
    server: Any, proxy: Proxy, registry: MlflowRegistry, experiment: str, lost: int, ask: Callable[..., str]
) -> None:
    proxy.rule(CREATE, LOSE, times=lost)
    made = ask(registry, experiment, "m/round/1", "round 1")
    assert proxy.met[LOSE] == lost
    proxy.clear()
    assert [run.info.run_id for run in runs(server, experiment)] == [made]
    assert MlflowRegistry(server.uri).run(experiment, "m/round/1", "round 1") == made


def test_a_timeline_is_not_split_when_answers_are_lost(
    server: Any, proxy: Proxy, registry: MlflowRegistry, experiment: str
) -> None:
    used = []
    for step in range(1, 5):
        proxy.rule(CREATE, LOSE, times=1)
        timeline = registry.run(experiment, "m/timeline", "v1")
        own = registry.run(experiment, f"m/round/{step}", f"round {step}", parent=timeline)
        registry.log_metrics(timeline, {"accuracy/estimate": 0.9}, step, NOW)
        registry.finish_run(own)
        used.append((timeline, own))
    assert len({timeline for timeline, _ in used}) == 1
    assert [step for step, _, _ in registry.metric_history(used[0][0], "accuracy/estimate")] == [1, 2, 3, 4]
    assert {run.info.run_id for run in runs(server, experiment)} == {run for pair in used for run in pair}


def test_a_request_that_arrives_late_makes_no_second_run(
    server: Any, proxy: Proxy, registry: MlflowRegistry, experiment: str
) -> None:
    proxy.rule(CREATE, LATE, times=1)
    made = registry.run(experiment, "m/round/1", "round 1")
    proxy.clear()
    eventually(lambda: len(runs(server, experiment)) == 2)
    assert registry.run(experiment, "m/round/1", "round 1") == made, "the one that is used stays the one"
    assert [run.info.run_id for run in runs(server, experiment)] == [made]


def test_a_late_double_is_gone_when_the_run_is_finished(
    server: Any, proxy: Proxy, registry: MlflowRegistry, experiment: str
) -> None:
    proxy.rule(CREATE, LATE, times=1)
    made = registry.run(experiment, "m/round/1", "round 1")
    proxy.clear()
    eventually(lambda: len(runs(server, experiment)) == 2)
    registry.finish_run(made)
    assert [(run.info.run_id, run.info.status) for run in runs(server, experiment)] == [(made, "FINISHED")]


@pytest.mark.parametrize("what", [LOSE, LATE, CUT, BUSY])
def test_a_new_run_that_is_not_answered_is_made_once(
    server: Any, proxy: Proxy, registry: MlflowRegistry, experiment: str, what: str
) -> None:
    first = registry.new_run(experiment, "m/round/1", "round 1")
    proxy.rule(CREATE, what, times=1)
    second = registry.new_run(experiment, "m/round/2", "round 2")
    assert proxy.met[what] == 1
    proxy.clear()
    if what == LATE:
        eventually(lambda: len(runs(server, experiment)) == 3)
    registry.finish_run(second)
    assert {run.info.run_id for run in runs(server, experiment)} == {first, second}


def test_a_new_run_is_one_request_and_its_end_another(
    server: Any, proxy: Proxy, registry: MlflowRegistry, experiment: str
) -> None:
    registry.new_run(experiment, "m/round/1", "round 1")  # the first one of a process is looked for
    asked = len(proxy.seen)
    parent = registry.new_run(experiment, "m/round/2", "round 2")
    made = registry.new_run(experiment, "m/round/3", "it's \u4e09", parent=parent, tags={"opmon.round": 3})
    registry.finish_run(made)
    paths = [line.removeprefix("POST /api/2.0/mlflow/runs/") for line in proxy.seen[asked:]]
    assert paths == ["create", "create", "update"]
    (found,) = [run for run in runs(server, experiment) if run.info.run_id == made]
    assert (found.info.run_name, found.info.status) == ("it's \u4e09", "FINISHED")
    assert found.data.tags.items() >= {"opmon.key": "m/round/3", "opmon.round": "3"}.items()
    assert found.data.tags["mlflow.parentRunId"] == parent
    registry.log_artifact(made, Path(__file__))
    assert registry.files(made) == {"test_lost_answers.py": Path(__file__).stat().st_size}


def test_new_runs_of_a_database_that_was_set_back_are_those_that_are_there(
    server: Any, registry: MlflowRegistry, experiment: str
) -> None:
    """A process that goes on meets its own runs; one that begins anew looks for the first, and then for the next."""
    made = [registry.new_run(experiment, f"m/round/{number}", f"round {number}") for number in (1, 2, 3)]
    assert registry.new_run(experiment, "m/round/3", "round 3") == made[2]
    later = MlflowRegistry(server.uri)
    again = [later.new_run(experiment, f"m/round/{number}", f"round {number}") for number in (2, 3, 4, 5)]
    assert again[:2] == made[1:]
    assert {run.info.run_id for run in runs(server, experiment)} == {*made, *again}


def test_the_answer_that_a_run_cannot_be_made_is_told(registry: MlflowRegistry, experiment: str) -> None:
    registry.new_run(experiment, "m/round/1", "round 1")
    registry._client.delete_experiment(experiment)
    with pytest.raises(InputError, match="opening the run 'round 2'"):
        registry.new_run(experiment, "m/round/2", "round 2")


def test_doubles_of_old_are_told_apart_and_what_they_hold_is_kept(server: Any, experiment: str) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(server.uri)
    first, second, empty = (
        client.create_run(experiment, start_time=1000 + k, tags={"opmon.key": "m/timeline"}).info.run_id
        for k in range(3)
    )
    client.log_metric(second, "accuracy/estimate", 0.5)
    assert MlflowRegistry(server.uri).run(experiment, "m/timeline", "v1") == first, "the oldest"
    left = {run.info.run_id: run.data.tags for run in runs(server, experiment)}
    assert set(left) == {first, second}
    assert left[second]["opmon.double_of"] == first
    assert "opmon.key" not in left[second]
    assert client.get_run(empty).info.lifecycle_stage == "deleted"


def test_an_experiment_whose_answer_is_lost_is_made_once(proxy: Proxy, registry: MlflowRegistry) -> None:
    name = f"opmon/{uuid.uuid4().hex}"
    proxy.rule("POST .*/experiments/create", LOSE, times=2)
    assert registry.experiment(name) == registry.experiment(name)


def test_whatever_answer_is_lost_asking_again_changes_nothing(
    server: Any, proxy: Proxy, registry: MlflowRegistry, experiment: str, tmp_path: Path
) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "a.txt").write_text("a")
    proxy.rule("POST|PUT|DELETE", LOSE, times=1)
    for _ in range(2):
        run = registry.run(experiment, "m/round/1", "round 1")
        proxy.rule("POST|PUT|DELETE", LOSE, times=1)
        registry.log_metrics(run, {"a": 1.0}, 1, NOW)
        registry.log_params(run, {"b": 2})
        proxy.rule("PUT", LOSE, times=1)
        registry.log_artifacts(run, tmp_path / "report", "report")
        registry.finish_run(run)
    assert registry.metric_history(run, "a") == [(1, NOW, 1.0)]
    assert registry.download(run, "report/a.txt", tmp_path / "got").read_text() == "a"
    assert len(runs(server, experiment)) == 1


def test_rounds_whose_answers_are_lost_are_told_once(server: Any, proxy: Proxy, tmp_path: Path) -> None:
    name = f"lost-{uuid.uuid4().hex[:8]}"
    workbench = Workbench(tmp_path, proxy.uri, name, "models:/digits@champion")
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}")
    for _ in range(2):
        workbench.write_window()
        proxy.rule(CREATE, LOSE, times=1)
        assert monitor.advance().problems == []
        workbench.answer(monitor)
        assert monitor.advance().closed == 1
    assert proxy.met[LOSE] == 2
    with monitor.store.read() as connection:
        told = rounds.newest(connection, name, 5)
    assert len({round_.timeline_run_id for round_ in told}) == 1
    history = monitor.registry.metric_history(told[0].timeline_run_id, "accuracy/estimate")
    assert [step for step, _, _ in history] == [1, 2]
    expected = {round_.run_id for round_ in told} | {told[0].timeline_run_id}
    assert {run.info.run_id for run in runs(server, monitor.registry.experiment(f"opmon/{name}"))} == expected


def eventually(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to be so")


# --- nobody is kept waiting -------------------------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is waited for during 3 s, retries and all."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("what", [STALL, DRIP])
def test_a_question_is_not_waited_for_without_end(
    proxy: Proxy, registry: MlflowRegistry, experiment: str, what: str
) -> None:
    proxy.rule("runs/search", what)
    begun = time.monotonic()
    with pytest.raises(RegistryUnavailable, match="Nothing is lost"):
        registry.run(experiment, "m/round/1", "round 1")
    assert time.monotonic() - begun < 10
    proxy.clear()
    assert registry.run(experiment, "m/round/1", "round 1")


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("what", [STALL, DRIP])
def test_a_download_is_given_up_when_nothing_arrives(
    proxy: Proxy, registry: MlflowRegistry, experiment: str, tmp_path: Path, what: str
) -> None:
    (tmp_path / "a.txt").write_text("a" * 1000)
    run = registry.run(experiment, "m/round/1", "round 1")
    registry.log_artifact(run, tmp_path / "a.txt")
    proxy.rule("GET .*mlflow-artifacts", what)
    begun = time.monotonic()
    with pytest.raises(RegistryUnavailable):
        registry.download(run, "a.txt", tmp_path / "got")
    assert time.monotonic() - begun < 12


@pytest.mark.usefixtures("short")
def test_an_upload_is_given_up(proxy: Proxy, registry: MlflowRegistry, experiment: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    run = registry.run(experiment, "m/round/1", "round 1")
    proxy.rule("PUT", STALL)
    with pytest.raises(RegistryUnavailable):
        registry.log_artifact(run, tmp_path / "a.txt")


@pytest.mark.usefixtures("short")
def test_a_server_that_does_not_answer_is_left_alone_and_tried_again(
    proxy: Proxy, registry: MlflowRegistry, experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.rule("runs/search", STALL)
    monkeypatch.setattr(Breaker, "FIRST_REST", 3600.0)
    monkeypatch.setattr(Breaker, "LONGEST_REST", 3600.0)
    for _ in range(Breaker.FAILURES):
        with pytest.raises(RegistryUnavailable, match="no answer"):
            registry.run(experiment, "m/round/1", "round 1")
    asked = len(proxy.seen)
    told = set()
    for later in range(20):
        registry._connection.calls._questions._clock = lambda later=later: time.monotonic() + later
        with pytest.raises(RegistryUnavailable, match="left alone until") as refused:
            registry.run(experiment, "m/round/1", "round 1")
        told.add(str(refused.value))
    assert len(proxy.seen) == asked, "nobody was kept waiting"
    assert len(told) == 1, "the message stays the same, so that it can be told once"
    proxy.clear()
    registry._connection.calls._questions._clock = lambda: time.monotonic() + 3600
    assert registry.run(experiment, "m/round/1", "round 1")


def test_giving_up_ends_what_is_waited_for_at_once(proxy: Proxy, registry: MlflowRegistry, experiment: str) -> None:
    proxy.rule("runs/search", STALL)
    threading.Thread(target=lambda: proxy.met_one.wait() and registry.give_up()).start()
    begun = time.monotonic()
    with pytest.raises(RegistryUnavailable, match="opmon is stopping"):
        registry.run(experiment, "m/round/1", "round 1")
    assert time.monotonic() - begun < 45, "a call is left after 60 s"
    assert left_behind()
    with pytest.raises(RegistryUnavailable, match="opmon is stopping"):
        registry.check()
    proxy.clear()
    eventually(lambda: not left_behind())


def test_a_process_ends_though_threads_of_a_call_hang() -> None:
    """MLflow fetches artifacts in a pool of threads, which the interpreter would wait for."""
    code = (
        "import threading, time; from concurrent.futures import ThreadPoolExecutor; from opmon import cli\n"
        "from opmon.registry._calls import Calls; calls = Calls(lambda: 'here')\n"
        "threading.Timer(0.5, calls.give_up).start()\n"
        "try: calls.ask(lambda: ThreadPoolExecutor().submit(time.sleep, 600).result())\n"
        "except cli.OpmonError: cli._end(3)"
    )
    begun = time.monotonic()
    assert subprocess.run([sys.executable, "-c", code], timeout=LONGEST, check=False).returncode == 3
    assert time.monotonic() - begun < 30


# --- the breaker ------------------------------------------------------------------------------------------------------


class Ticking:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_breaker_rests_longer_each_time_and_lets_one_try() -> None:
    clock = Ticking()
    breaker = Breaker(clock)
    breaker.failed()
    assert breaker.enter() == 0, "one failure is nothing"
    breaker.failed()
    assert breaker.enter() == Breaker.FIRST_REST
    breaker.failed()
    assert breaker.enter() == Breaker.FIRST_REST, "who was under way makes it no longer"
    for rest in (30.0, 60.0, 120.0, 120.0):
        clock.now += breaker.enter()
        assert breaker.enter() == 0
        assert breaker.enter() > 0, "one tries for all"
        breaker.failed()
        assert breaker.enter() == rest
    clock.now += 120
    assert breaker.enter() == 0
    breaker.answered()
    assert breaker.enter() == 0
    assert breaker.enter() == 0


def test_a_try_that_told_nothing_leaves_the_next_one_to_another() -> None:
    clock = Ticking()
    breaker = Breaker(clock)
    for _ in range(Breaker.FAILURES):
        breaker.failed()
    clock.now += Breaker.FIRST_REST
    assert breaker.enter() == 0
    breaker.left()
    assert breaker.enter() == 0


@pytest.mark.usefixtures("short")
def test_a_download_may_take_its_time_while_bytes_arrive() -> None:
    arrived, done = [0], threading.Event()

    def fetch() -> str:
        for _ in range(8):
            done.wait(0.5)
            arrived[0] += 1
        return "all of it"

    assert Calls(lambda: "here").download(fetch, lambda: arrived[0]) == "all of it"

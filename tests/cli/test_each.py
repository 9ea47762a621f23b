"""A command that removes does so for every monitor that it can, whatever keeps it from one of them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from opmon.cli import DONE, HELD, LATER, _each
from opmon.errors import RegistryUnavailable
from opmon.monitor import Monitor
from opmon.store.engine import open_store
from opmon.store.leases import hold
from tests.cli.test_events import opmon
from tests.web.world import monitor

COMMANDS = [("prune", "--yes"), ("inputs", "forget", "--yes", "order-1")]


@pytest.fixture
def config(sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(_each, "HELD_SECONDS", 0.2)
    monitors = {name: monitor(keep={"payloads": "30d"}) for name in "ab"}
    path = tmp_path / "opmon.yaml"
    path.write_text(yaml.safe_dump({"database": sqlite, "monitors": monitors}))
    (tmp_path / "production").mkdir()
    return str(path)


@pytest.mark.parametrize("command", COMMANDS)
def test_one_that_another_process_is_at_keeps_it_from_no_other(
    config: str, sqlite: str, command: tuple[str, ...]
) -> None:
    with hold(open_store(sqlite), "a"):
        code, out, err = opmon(*command, "-c", config)
        told = [json.loads(line) for line in opmon(*command, "--json", "-c", config)[1].splitlines()]
    assert code == HELD
    assert out.startswith("b: ")
    assert "a: not " in err
    assert "is being worked on by process" in err
    assert [each["monitor"] for each in told] == ["b", "a"]
    assert "is being worked on" in told[1]["problem"]
    assert "a: " in opmon(*command, "-c", config)[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_one_that_mlflow_does_not_answer_for_keeps_it_from_no_other(
    config: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(given: Monitor) -> Any:
        if given.settings.name == "a":
            raise RegistryUnavailable("MLflow is away")
        return at_work(given)

    at_work = Monitor._at_work
    monkeypatch.setattr(Monitor, "_at_work", failing)
    code, out, err = opmon(*command, "-c", config)
    assert (code, out.startswith("b: ")) == (LATER, True)
    assert "MLflow is away" in err


def test_one_that_is_free_soon_is_waited_for(config: str, sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_each, "HELD_SECONDS", 60.0)
    is_held, ends = threading.Event(), threading.Event()

    def work() -> None:
        with hold(open_store(sqlite), "a"):
            is_held.set()
            ends.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    assert is_held.wait(60)

    def sleep(seconds: float) -> None:
        ends.set()
        thread.join()

    monkeypatch.setattr("opmon.cli._each.time.sleep", sleep)
    code, out, err = opmon("prune", "--yes", "-c", config)
    assert (code, err) == (DONE, "")
    assert [line[:2] for line in out.splitlines()] == ["b:", "a:"]
